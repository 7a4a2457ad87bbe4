// What the store throws when a row is not as the caller believed.
//
// All of these are `not_applied`: the database is as it was. They are answers that the
// caller decides on, never to be retried unchanged. Failures of the database itself come
// as the sql floor's errors, whose outcome() may be `unknown`: an owner of a shard then takes it
// again under a new range, so that a late commit of the lost write is fenced off.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <source_location>
#include <string>

#include <holdfast/base/error.hpp>
#include <holdfast/sql/value.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::store {

// A version or a lease is not what the caller expected, or its row is gone.
class ConditionFailed : public Error {
public:
    explicit ConditionFailed(std::string message,
                             std::source_location where = std::source_location::current())
        : Error(Code::condition_failed, Outcome::not_applied, std::move(message), where) {}
};

// Another process owns the shard. Its former owner stops.
class ShardOwnershipLost : public ConditionFailed {
public:
    ShardOwnershipLost(ShardLease lease,
                       std::optional<RangeId> found,
                       std::source_location where = std::source_location::current());

    [[nodiscard]] const ShardLease& lease() const noexcept { return lease_; }
    // Empty: there is no such shard.
    [[nodiscard]] std::optional<RangeId> found() const noexcept { return found_; }

private:
    ShardLease lease_;
    std::optional<RangeId> found_;
};

enum class RunState : std::int32_t { created = 1, running, completed, zombie, invalid, corrupted };
enum class RunStatus : std::int32_t {
    running = 1,
    completed,
    failed,
    cancelled,
    terminated,
    continued_as_new,
    timed_out,
    paused,
};

// The event by which a request was answered.
struct RequestEvent {
    std::int32_t event_type = 0;
    std::int64_t event_id = 0;

    friend bool operator==(const RequestEvent&, const RequestEvent&) = default;
};
// What a request that started a run is answered by, if nothing else is known.
inline constexpr RequestEvent started_event{.event_type = 1, .event_id = 1};

// The current run of a workflow, as its current_run_row shows it.
struct CurrentRun {
    RunId run{};
    std::string create_request_id{};
    RunState state = RunState::created;
    RunStatus status = RunStatus::running;
    std::optional<sql::Timestamp> start_time{};
    std::int64_t last_write_version = 0;
    std::map<std::string, RequestEvent> request_ids{};  // By the request's id.
    std::optional<RunId> first_run{};                   // Of the chain, if it is known.

    friend bool operator==(const CurrentRun&, const CurrentRun&) = default;
};

// Another run is the current one, or it is not in the state the caller expects.
class CurrentWorkflowConditionFailed : public ConditionFailed {
public:
    CurrentWorkflowConditionFailed(std::string message,
                                   std::optional<CurrentRun> current,
                                   std::source_location where = std::source_location::current())
        : ConditionFailed(std::move(message), where), current_(std::move(current)) {}

    // Empty: there is no current run.
    [[nodiscard]] const std::optional<CurrentRun>& current() const noexcept { return current_; }

private:
    std::optional<CurrentRun> current_;
};

// A run has other tokens than the writer expects, or is there already.
class WorkflowConditionFailed : public ConditionFailed {
public:
    WorkflowConditionFailed(std::string message,
                            std::int64_t next_event_id,
                            std::int64_t db_record_version,
                            std::source_location where = std::source_location::current())
        : ConditionFailed(std::move(message), where),
          next_event_id_(next_event_id),
          db_record_version_(db_record_version) {}

    // What was found; both 0 if a run was to be created that is there already.
    [[nodiscard]] std::int64_t next_event_id() const noexcept { return next_event_id_; }
    [[nodiscard]] std::int64_t db_record_version() const noexcept { return db_record_version_; }

private:
    std::int64_t next_event_id_;
    std::int64_t db_record_version_;
};

class NotFound : public Error {
public:
    explicit NotFound(std::string message,
                      std::source_location where = std::source_location::current())
        : Error(Code::not_found, Outcome::not_applied, std::move(message), where) {}
};

// The request contradicts itself or what it is about.
class InvalidPersistenceRequest : public InvalidArgument {
public:
    using InvalidArgument::InvalidArgument;
};

// More than one write may have: bytes, or rows of one transaction where the database counts them.
class TransactionSizeLimit : public Error {
public:
    explicit TransactionSizeLimit(std::string message,
                                  std::source_location where = std::source_location::current())
        : Error(Code::limit_exceeded, Outcome::not_applied, std::move(message), where) {}
};

// An append was cut off by its deadline or stop token. The node may be there or not; to append it
// again is harmless.
class AppendHistoryTimeout : public Error {
public:
    explicit AppendHistoryTimeout(std::string message,
                                  std::source_location where = std::source_location::current())
        : Error(Code::deadline, Outcome::unknown, std::move(message), where) {}
};

// No database of this kind answers that.
class Unimplemented : public Error {
public:
    explicit Unimplemented(std::string message,
                           std::source_location where = std::source_location::current())
        : Error(Code::unsupported, Outcome::not_applied, std::move(message), where) {}
};

// Stored bytes are not what their encoding says.
class DamagedData : public Error {
public:
    explicit DamagedData(std::string message,
                         std::source_location where = std::source_location::current())
        : Error(Code::internal, Outcome::not_applied, std::move(message), where) {}
};

}  // namespace holdfast::store
