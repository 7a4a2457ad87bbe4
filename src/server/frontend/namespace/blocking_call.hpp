// Methods whose handlers block in the store.
//
// The thread of the transport only hands the call over; the handler runs on the executor.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "executor/executor.hpp"
#include "rpc/dispatch.hpp"
#include "rpc/refusal.hpp"
#include <google/protobuf/message.h>

namespace holdfast::server::frontend {

// A key that no other job has, so that the calls run side by side.
[[nodiscard]] std::string key_of_its_own();

// `handle(request, response)` fills the response, or returns why it is refused; what it throws
// becomes the answer. Requires: `executor` outlives the dispatch.
template <class Request, class Response, class Handle>
void add_blocking(rpc::Dispatch& dispatch, Executor& executor, std::string method, Handle handle) {
    dispatch.add<Request, Response>(
        std::move(method),
        [&executor, handle = std::move(handle)](const Request& request,
                                                rpc::Reply<Response> reply) {
            executor.post(
                key_of_its_own(),
                [&request, handle, reply = std::optional(std::move(reply))]() mutable {
                    try {
                        std::optional<rpc::Refusal> refusal = handle(request, reply->message());
                        if (refusal) {
                            (*std::move(reply)).refuse(*std::move(refusal));
                        } else {
                            (*std::move(reply)).send();
                        }
                    } catch (...) {
                        (*std::move(reply)).refuse(rpc::refusal_of(std::current_exception()));
                    }
                });
        });
}

}  // namespace holdfast::server::frontend
