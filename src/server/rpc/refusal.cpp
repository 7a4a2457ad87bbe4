#include "rpc/refusal.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/message.h>
#include <google/rpc/status.pb.h>
#include <temporal/api/enums/v1/failed_cause.pb.h>
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast::server::rpc {

namespace {

constexpr std::string_view truncation_mark = "... <truncated>";

StatusCode status_of(Code code) {
    switch (code) {
        case Code::invalid_argument:
        case Code::limit_exceeded:
            return StatusCode::invalid_argument;
        case Code::condition_failed:
        case Code::conflict:
        case Code::unavailable:
        case Code::unauthorized:  // The database refused us, not the caller.
        case Code::exhausted:
            return StatusCode::unavailable;
        case Code::not_found:
            return StatusCode::not_found;
        case Code::already_exists:
            return StatusCode::already_exists;
        case Code::cancelled:
            return StatusCode::cancelled;
        case Code::deadline:
            return StatusCode::deadline_exceeded;
        case Code::unsupported:
        case Code::internal:
            break;
    }
    return StatusCode::internal;
}

// FNV-1a: equal texts have equal hashes in every process, so that a report can be searched for.
std::uint32_t hash_of(std::string_view text) {
    std::uint32_t hash = 2166136261U;
    for (const char byte : text) {
        hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619U;
    }
    return hash;
}

// Go and Java look for these in an UNIMPLEMENTED, and send nothing compressed from then on.
bool speaks_of_compression(std::string_view text) {
    static constexpr std::array<std::string_view, 3> words{
        "decompress", "grpc-encoding", "compressor"};
    return std::ranges::any_of(words,
                               [&](std::string_view word) { return text.find(word) != text.npos; });
}

// RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT is RpsLimit: without `prefix`, words in title case.
std::string short_name(std::string_view name, std::string_view prefix) {
    name.remove_prefix(name.starts_with(prefix) ? prefix.size() : 0);
    std::string text;
    bool begins = true;
    for (const char letter : name) {
        if (letter != '_') {
            text += begins ? letter
                           : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
        }
        begins = letter == '_';
    }
    return text;
}

std::string cut(std::string text) {
    text = valid_utf8(text);
    if (text.size() <= message_bytes_max) {
        return text;
    }
    text.resize(message_bytes_max - truncation_mark.size());
    text.resize(valid_utf8_bytes(text));
    text += truncation_mark;
    return text;
}

}  // namespace

Refusal::Refusal(StatusCode status, std::string text) : code(status), message(std::move(text)) {}

Refusal::Refusal(StatusCode status, std::string text, const google::protobuf::Message& about)
    : code(status),
      message(std::move(text)),
      detail_type(about.GetTypeName()),
      detail(about.SerializeAsString()) {}

Refusal refusal_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const Error& failure) {
        return {status_of(failure.code()), describe(error)};
    } catch (const std::exception& failure) {
        return {StatusCode::internal, failure.what()};
    } catch (...) {
        return {StatusCode::internal, "a handler threw what is not an exception"};
    }
}

Refusal shaped(Refusal refusal, Logger& log) {
    if (refusal.code == StatusCode::internal || refusal.code == StatusCode::unknown) {
        const std::string hash = fmt::format("{:08x}", hash_of(refusal.message));
        log.error("internal failure", {{"hash", hash}, {"text", refusal.message}});
        refusal.message = "something went wrong, please retry (" + hash + ")";
    } else if (refusal.code == StatusCode::unimplemented &&
               speaks_of_compression(refusal.message)) {
        log.error("misleading refusal", {{"text", refusal.message}});
        refusal.message = "what was called is unimplemented";
    }
    refusal.message = cut(std::move(refusal.message));
    return refusal;
}

std::string status_details(const Refusal& refusal) {
    if (refusal.detail_type.empty()) {
        return {};
    }
    google::rpc::Status status;
    status.set_code(static_cast<int>(refusal.code));
    status.set_message(refusal.message);
    auto* detail = status.add_details();
    detail->set_type_url("type.googleapis.com/" + refusal.detail_type);
    detail->set_value(refusal.detail);
    return status.SerializeAsString();
}

std::optional<Exhaustion> exhaustion(const Refusal& refusal) {
    namespace enums = temporal::api::enums::v1;
    temporal::api::errordetails::v1::ResourceExhaustedFailure detail;
    if (refusal.code != StatusCode::resource_exhausted ||
        refusal.detail_type != detail.GetTypeName() || !detail.ParseFromString(refusal.detail)) {
        return std::nullopt;
    }
    return Exhaustion{.cause = short_name(enums::ResourceExhaustedCause_Name(detail.cause()),
                                          "RESOURCE_EXHAUSTED_CAUSE_"),
                      .scope = short_name(enums::ResourceExhaustedScope_Name(detail.scope()),
                                          "RESOURCE_EXHAUSTED_SCOPE_")};
}

}  // namespace holdfast::server::rpc
