#include "time_skipping/test_service.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/parked_reply.hpp"
#include "history/times.hpp"
#include <google/protobuf/empty.pb.h>
#include <temporal/api/testservice/v1/request_response.pb.h>

namespace holdfast::server::time_skipping {

namespace {

namespace api = temporal::api::testservice::v1;
using SleepReply = rpc::Reply<api::SleepResponse>;

std::string method(std::string_view name) {
    return "/temporal.api.testservice.v1.TestService/" + std::string(name);
}

rpc::Refusal unbalanced() {
    return {rpc::StatusCode::failed_precondition, "Unbalanced lock and unlock calls"};
}

// `begin(over)` gives the sleep that calls `over`, or nothing if time was not locked.
template <class Begin>
void sleep(Skipper& skipper, Alarms& alarms, SleepReply reply, Begin begin) {
    using frontend::Woken;
    auto parked = std::make_shared<frontend::ParkedReply<api::SleepResponse>>(
        alarms, [](Woken why, SleepReply kept) {
            if (why == Woken::news) {
                (void)std::move(kept).send();
            } else {
                (void)std::move(kept).refuse(
                    {rpc::StatusCode::unavailable, "the server stops before the sleep is over"});
            }
        });
    const std::optional<Skipper::Sleep> sleep = begin([parked] { parked->wake(Woken::news); });
    if (!sleep) {
        (void)std::move(reply).refuse(unbalanced());
        return;
    }
    reply.on_end([parked, &skipper, sleep = *sleep](rpc::Ending why) {
        skipper.cancel(sleep);
        parked->wake(why == rpc::Ending::cancelled ? Woken::left : Woken::expired);
    });
    parked->put(std::move(reply));
}

Wall after(Wall now, const google::protobuf::Duration& duration) {
    return now + std::chrono::duration_cast<Wall::duration>(history::span_of(duration));
}

void add_locks(rpc::Dispatch& dispatch, Skipper& skipper) {
    dispatch.add<api::LockTimeSkippingRequest, api::LockTimeSkippingResponse>(
        method("LockTimeSkipping"), [&skipper](const auto& /*request*/, auto reply) {
            skipper.lock();
            (void)std::move(reply).send();
        });
    dispatch.add<api::UnlockTimeSkippingRequest, api::UnlockTimeSkippingResponse>(
        method("UnlockTimeSkipping"), [&skipper](const auto& /*request*/, auto reply) {
            if (skipper.unlock()) {
                (void)std::move(reply).send();
            } else {
                (void)std::move(reply).refuse(unbalanced());
            }
        });
    dispatch.add<google::protobuf::Empty, api::GetCurrentTimeResponse>(
        method("GetCurrentTime"), [&skipper](const auto& /*request*/, auto reply) {
            *reply.message().mutable_time() = history::to_timestamp(skipper.now());
            (void)std::move(reply).send();
        });
}

}  // namespace

void add_test_service(rpc::Dispatch& dispatch, Skipper& skipper, Alarms& alarms) {
    add_locks(dispatch, skipper);
    dispatch.add<api::SleepRequest, api::SleepResponse>(
        method("Sleep"), [&skipper, &alarms](const api::SleepRequest& request, SleepReply reply) {
            const Wall until = after(skipper.now(), request.duration());
            sleep(skipper, alarms, std::move(reply), [&](auto over) {
                return std::optional(skipper.sleep_until(until, std::move(over)));
            });
        });
    dispatch.add<api::SleepUntilRequest, api::SleepResponse>(
        method("SleepUntil"),
        [&skipper, &alarms](const api::SleepUntilRequest& request, SleepReply reply) {
            const auto until =
                std::chrono::floor<Wall::duration>(history::time_of(request.timestamp()));
            sleep(skipper, alarms, std::move(reply), [&](auto over) {
                return std::optional(skipper.sleep_until(until, std::move(over)));
            });
        });
    dispatch.add<api::SleepRequest, api::SleepResponse>(
        method("UnlockTimeSkippingWithSleep"),
        [&skipper, &alarms](const api::SleepRequest& request, SleepReply reply) {
            const Wall until = after(skipper.now(), request.duration());
            sleep(skipper, alarms, std::move(reply), [&](auto over) {
                return skipper.unlock_until(until, std::move(over));
            });
        });
}

}  // namespace holdfast::server::time_skipping
