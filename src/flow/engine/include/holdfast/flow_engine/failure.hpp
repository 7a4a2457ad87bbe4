// What can go wrong in a workflow, as data that is stored and as exceptions that its code sees.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <holdfast/flow_engine/payload.hpp>

namespace holdfast::flow {

enum class FailureKind : std::uint8_t {
    application,     // Thrown by user code; workflow code sees it and may handle it.
    timeout,         // An operation took longer than it was given.
    cancelled,       // Ended by a cancel request.
    panic,           // Workflow code threw something other than a Failure.
    nondeterminism,  // The code does not do what its history says. Ends the instance.
    poison,          // Attempted too often without an end. Ends the instance.
    infrastructure,  // A limit or a damaged row. Ends the instance.
};

// The type of an application failure that ends an instance because an operator asked for it.
inline constexpr std::string_view failed_by_operator = "FailedByOperator";

[[nodiscard]] std::string_view to_string(FailureKind kind) noexcept;
[[nodiscard]] std::optional<FailureKind> failure_kind(std::string_view name) noexcept;

// Workflow code sees application, timeout and cancelled failures of what it awaits; the others end
// the instance that receives them.
[[nodiscard]] bool reaches_code(FailureKind kind) noexcept;

// A failure as it is stored and sent.
struct FailureInfo {
    FailureKind kind = FailureKind::application;
    std::string type{};     // A name that the code chose, "CardDeclined"; may be empty.
    std::string message{};  // For people.
    bool retryable = true;
    std::optional<Payload> details{};
    std::string cause{};  // What it came from, in words; may be empty.

    // One line: "cancelled: by the operator".
    [[nodiscard]] std::string text() const;
    friend bool operator==(const FailureInfo&, const FailureInfo&) = default;
};

// The family of errors that workflow code sees and that activities throw. Anything else that leaves
// an activity becomes a Failure with its what(); anything else that leaves a workflow is a panic.
class Failure : public std::exception {
public:
    explicit Failure(std::string message) : Failure("", std::move(message)) {}
    Failure(std::string type, std::string message);
    explicit Failure(FailureInfo info);

    [[nodiscard]] const char* what() const noexcept override { return info_->message.c_str(); }
    [[nodiscard]] const FailureInfo& info() const noexcept { return *info_; }
    [[nodiscard]] const std::string& type() const noexcept { return info_->type; }
    [[nodiscard]] bool retryable() const noexcept { return info_->retryable; }

private:
    std::shared_ptr<const FailureInfo> info_;  // Copying an exception must not throw.
};

class ActivityFailed : public Failure {
public:
    using Failure::Failure;
};
class ChildFailed : public Failure {
public:
    using Failure::Failure;
};
class TimedOut : public Failure {
public:
    using Failure::Failure;
};
// A value that came back is not what the code expects.
class DecodeError : public Failure {
public:
    using Failure::Failure;
};

// Thrown at an await after a cancel request. Not a std::exception, so that a handler
// for errors does not swallow it by accident. Catch it only to clean up.
class Cancelled {
public:
    explicit Cancelled(std::string reason) : reason_(std::move(reason)) {}
    [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

private:
    std::string reason_;
};

// What the exception that is being handled means as the failure of an activity.
// Requires: called from a handler.
[[nodiscard]] FailureInfo failure_now();

// Non-retryable shorthand: throw flow::permanent("CardDeclined", "the bank said no").
[[nodiscard]] Failure permanent(std::string type, std::string message);

}  // namespace holdfast::flow
