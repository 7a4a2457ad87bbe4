#include "http/http_message.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::http {
namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::string_view head_end = "\r\n\r\n";

constexpr int bad_request = 400;

std::string in_lower_case(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return lower;
}

bool is_token(std::string_view text) {
    constexpr std::string_view others = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               others.find(c) != std::string_view::npos;
    });
}

bool has_control(std::string_view text) {
    constexpr unsigned char space = 0x20;
    constexpr unsigned char del = 0x7f;
    return std::any_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return (byte < space && c != '\t') || byte == del;
    });
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t";
    const std::size_t begin = text.find_first_not_of(blank);
    if (begin == std::string_view::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

std::string_view reason_phrase(int status) {
    static constexpr std::pair<int, std::string_view> phrases[] = {
        {200, "OK"},
        {202, "Accepted"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {409, "Conflict"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {417, "Expectation Failed"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"}};
    for (const auto& [known, phrase] : phrases) {
        if (known == status) {
            return phrase;
        }
    }
    return "Status";
}

}  // namespace

RequestReader::State RequestReader::refuse(int status, std::string_view reason) {
    refusal_ = {.status = status, .body = fmt::format("{}\n", reason)};
    return state_ = State::malformed;
}

RequestReader::State RequestReader::take(std::string_view bytes) {
    HOLDFAST_ASSERT(state_ == State::head || state_ == State::body);
    if (state_ == State::head) {
        // The end may lie across two pieces. What was searched is not searched again.
        const std::size_t searched = head_.size() - std::min(head_.size(), head_end.size() - 1);
        const std::size_t before = head_.size();
        head_.append(bytes.substr(0, head_bytes_max - before));
        const std::size_t end = head_.find(head_end, searched);
        if (end == std::string::npos) {
            return head_.size() < head_bytes_max
                       ? state_
                       : refuse(431, fmt::format("the head is over {} bytes", head_bytes_max));
        }
        bytes.remove_prefix(end + head_end.size() - before);
        head_.resize(end);
        if (read_head() == State::malformed) {
            return state_;
        }
    }
    request_.body.append(bytes.substr(0, body_bytes_ - request_.body.size()));
    return state_ = request_.body.size() == body_bytes_ ? State::complete : State::body;
}

RequestReader::State RequestReader::read_head() {
    std::string_view left = head_;
    const auto next_line = [&left] {
        const std::string_view line = left.substr(0, left.find(line_end));
        left.remove_prefix(std::min(left.size(), line.size() + line_end.size()));
        return line;
    };
    if (!read_request_line(next_line())) {
        return state_;
    }
    while (!left.empty()) {
        if (!read_header(next_line())) {
            return refuse(bad_request, "a header is not 'name: value'");
        }
    }
    return check_headers();
}

bool RequestReader::read_request_line(std::string_view line) {
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    const std::string_view method = line.substr(0, first);
    const std::string_view version =
        last == std::string_view::npos ? std::string_view{} : line.substr(last + 1);
    if (first == last || !is_token(method) || !version.starts_with("HTTP/")) {
        refuse(bad_request, "the first line is not an HTTP request");
        return false;
    }
    const std::string_view target = line.substr(first + 1, last - first - 1);
    if (target.find_first_of(" \t") != std::string_view::npos || has_control(target)) {
        refuse(bad_request, "the first line is not an HTTP request");
        return false;
    }
    http_1_0_ = version == "HTTP/1.0";
    if (!http_1_0_ && version != "HTTP/1.1") {
        refuse(505, "only HTTP/1.1 and HTTP/1.0 are served");
        return false;
    }
    request_.method = method;
    const std::string_view asked = target.substr(0, target.find('#'));
    const std::size_t mark = asked.find('?');
    request_.path = asked.substr(0, mark);
    request_.query = mark == std::string_view::npos ? std::string_view{} : asked.substr(mark + 1);
    return true;
}

bool RequestReader::read_header(std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) || has_control(line)) {
        return false;
    }
    request_.headers.emplace_back(in_lower_case(line.substr(0, colon)),
                                  trimmed(line.substr(colon + 1)));
    return true;
}

// A request whose length or host could be understood in two ways is refused, not guessed at.
RequestReader::State RequestReader::check_headers() {
    const auto hosts = request_.values("host");
    if (hosts.size() > 1 || (hosts.empty() && !http_1_0_)) {
        return refuse(bad_request, "the request must have one Host header");
    }
    if (!request_.values("transfer-encoding").empty()) {
        return refuse(411, "send the body with a Content-Length, not in chunks");
    }
    const auto lengths = request_.values("content-length");
    if (!lengths.empty()) {
        const std::string_view text = lengths.front();
        const char* const end = text.data() + text.size();
        const auto [after, error] =
            std::from_chars(text.data(), text.data() + text.size(), body_bytes_);
        if (lengths.size() > 1 || error != std::errc{} || after != end) {
            return refuse(bad_request, "Content-Length is not one number of bytes");
        }
    }
    for (const std::string_view expected : request_.values("expect")) {
        expects_continue_ = in_lower_case(expected) == "100-continue";
        if (!expects_continue_) {
            return refuse(417, "the only expectation that can be met is 100-continue");
        }
    }
    return state_ = State::body;
}

std::string to_bytes(const HttpAnswer& answer, bool head_only) {
    std::string bytes = fmt::format("HTTP/1.1 {} {}\r\nContent-Length: {}\r\n",
                                    answer.status,
                                    reason_phrase(answer.status),
                                    answer.body.size());
    if (!answer.type.empty()) {
        bytes += fmt::format("Content-Type: {}\r\n", answer.type);
    }
    bytes += "Connection: close\r\n";
    for (const auto& [name, value] : answer.headers) {
        bytes += fmt::format("{}: {}\r\n", name, value);
    }
    bytes += line_end;
    if (!head_only) {
        bytes += answer.body;
    }
    return bytes;
}

}  // namespace holdfast::http

namespace holdfast {

std::vector<std::string_view> ReceivedRequest::values(std::string_view name) const {
    std::vector<std::string_view> found;
    for (const auto& [known, value] : headers) {
        if (known == name) {
            found.emplace_back(value);
        }
    }
    return found;
}

}  // namespace holdfast
