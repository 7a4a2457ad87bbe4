#include <holdfast/flow_engine/failure.hpp>

#include <array>
#include <cstddef>
#include <utility>

#include <holdfast/base/utf8.hpp>

namespace holdfast::flow {
namespace {

// In the order of FailureKind. Stored.
constexpr std::array<std::string_view, 7> kinds{
    "application", "timeout", "cancelled", "panic", "nondeterminism", "poison", "infrastructure"};

// The texts come from anywhere, for example from what() of another library. A failure that cannot
// be stored would be retried for ever, so its texts are made storable here.
FailureInfo storable(FailureInfo info) {
    info.type = valid_utf8(info.type);
    info.message = valid_utf8(info.message);
    info.cause = valid_utf8(info.cause);
    return info;
}

std::string labelled(std::string_view label, std::string_view message) {
    std::string text(label);
    if (!label.empty() && !message.empty()) {
        text += ": ";
    }
    return text += message;
}

}  // namespace

std::string_view to_string(FailureKind kind) noexcept {
    return kinds[static_cast<std::size_t>(kind)];
}

std::optional<FailureKind> failure_kind(std::string_view name) noexcept {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (kinds[i] == name) {
            return static_cast<FailureKind>(i);
        }
    }
    return std::nullopt;
}

bool reaches_code(FailureKind kind) noexcept {
    switch (kind) {
        case FailureKind::application:
        case FailureKind::timeout:
        case FailureKind::cancelled:
        case FailureKind::panic:  // Of a child: an error that its parent may handle.
            return true;
        case FailureKind::nondeterminism:
        case FailureKind::poison:
        case FailureKind::infrastructure:
            return false;
    }
    return false;
}

std::string FailureInfo::text() const {
    switch (kind) {
        case FailureKind::application:
            return labelled(type, message);
        case FailureKind::nondeterminism:
            return labelled("nondeterministic", message);
        default:
            return labelled(to_string(kind), message);
    }
}

Failure::Failure(std::string type, std::string message)
    : Failure(FailureInfo{.type = std::move(type), .message = std::move(message)}) {}

Failure::Failure(FailureInfo info)
    : info_(std::make_shared<const FailureInfo>(storable(std::move(info)))) {}

FailureInfo failure_now() {
    try {
        throw;
    } catch (const Failure& failure) {
        return failure.info();
    } catch (const std::exception& error) {
        return Failure("", error.what()).info();
    } catch (...) {
        return Failure("", "an exception was thrown that does not derive from std::exception")
            .info();
    }
}

Failure permanent(std::string type, std::string message) {
    return Failure(
        FailureInfo{.type = std::move(type), .message = std::move(message), .retryable = false});
}

}  // namespace holdfast::flow
