// HTTP/1.1 messages as bytes: requests are read piece by piece, answers are written whole.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/base/http.hpp>

namespace holdfast::http {

using Request = ReceivedRequest;

// Reads one request. Memory is bounded by `head_bytes_max` and by what the caller passes after the
// head; the caller compares `body_bytes` with its own limit before it passes more.
class RequestReader {
public:
    enum class State { head, body, complete, malformed };

    static constexpr std::size_t head_bytes_max = 16384;

    // Requires: the state is `head` or `body`. Bytes after the end of the request are dropped.
    State take(std::string_view bytes);

    [[nodiscard]] State state() const noexcept { return state_; }
    [[nodiscard]] const Request& request() const noexcept { return request_; }
    [[nodiscard]] Request take_request() { return std::move(request_); }
    // Length of the body that the head announces.
    [[nodiscard]] std::size_t body_bytes() const noexcept { return body_bytes_; }
    // True if the client waits for "100 Continue" before it sends the body.
    [[nodiscard]] bool expects_continue() const noexcept { return expects_continue_; }
    // The answer to a malformed request.
    [[nodiscard]] const HttpAnswer& refusal() const noexcept { return refusal_; }

private:
    State refuse(int status, std::string_view reason);
    State read_head();
    bool read_request_line(std::string_view line);
    bool read_header(std::string_view line);
    State check_headers();

    State state_ = State::head;
    std::string head_;
    bool http_1_0_ = false;
    Request request_;
    std::size_t body_bytes_ = 0;
    bool expects_continue_ = false;
    HttpAnswer refusal_;
};

// The bytes of an answer, after which the connection closes. `head_only` leaves out the body.
[[nodiscard]] std::string to_bytes(const HttpAnswer& answer, bool head_only);

}  // namespace holdfast::http
