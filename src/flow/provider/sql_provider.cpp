#include <holdfast/flow/sql_provider.hpp>

#include <algorithm>

#include "provider/columns.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow_engine/stored.hpp>
#include <holdfast/sql/error.hpp>

namespace holdfast::flow {

std::span<const sql::MigrationFile> schema_files();  // Made from schema/*.sql.

namespace {

// Below the 1 MiB that the strictest database takes in a column, with room for one more event.
constexpr std::size_t history_row_bytes = 512UL * 1024;

}  // namespace

const sql::SchemaPart& schema_part() {
    static const sql::SchemaPart part{.name = "flow", .files = schema_files(), .oldest = 1};
    return part;
}

SqlProvider::SqlProvider(sql::Database& db, SqlProviderOptions options)
    : db_(db),
      options_(options),
      instances_at_once_(ClaimSize::first),
      activities_at_once_(ClaimSize::first) {}

sql::TxOptions SqlProvider::writing(sql::Durability durability) const {
    sql::TxOptions options;
    options.deadline = Deadline::after(options_.deadline);
    options.retry = options_.retry;
    options.durability = durability;
    return options;
}

sql::TxOptions SqlProvider::reading() const {
    sql::TxOptions options = writing();
    options.read_only = true;
    return options;
}

bool SqlProvider::claims_are_spread() const {
    return !db_.dialect().locks_block && options_.spare_candidates > 0;
}

void SqlProvider::wake(sql::Tx& tx, std::string_view whom) const {
    if (options_.notify) {
        tx.notify(wake_channel, whom);
    }
}

sql::Guard instance_guard(std::string_view instance, const Uuid& token) {
    return {.what = fmt::format("workflow '{}'", instance),
            .key = {std::string(instance)},
            .tokens = {token}};
}

bool connection_broke(const Error& error) {
    return error.outcome() == Outcome::unknown ||
           sql::classify(error) == sql::ErrorClass::connection_lost;
}

Status stored_status(std::string_view name) {
    const auto status = status_named(name);
    if (!status) {
        throw Error(Code::internal,
                    Outcome::not_applied,
                    fmt::format("'{}' is not the status of a workflow; the row is damaged", name));
    }
    return *status;
}

BlockKind stored_block_kind(std::string_view name) {
    const auto kind = block_kind_named(name);
    if (!kind) {
        throw Error(
            Code::internal,
            Outcome::not_applied,
            fmt::format("'{}' is not a reason to block a workflow; the row is damaged", name));
    }
    return *kind;
}

InboxMessage inbox_message(const sql::Row& row) {
    InboxMessage message;
    message.position = row.get<std::int64_t>(0);
    message.message.execution = row.get<ExecutionId>(1);
    message.attempt = row.get<int>(2);
    try {
        message.message.body = decode_message(row.get<std::string>(3));
    } catch (const Undecodable& damaged) {
        message.message.body = ContinueMessage{};  // Has no effect, unlike a start.
        message.error = damaged.what();
    }
    return message;
}

InstanceInfo instance_info(const sql::Row& row) {
    InstanceInfo info;
    info.instance = row.get<std::string>(0);
    info.name = row.get<std::string>(1);
    info.version = row.get<std::string>(2);
    info.execution = row.get<ExecutionId>(3);
    info.status = stored_status(row.get<std::string>(4));
    info.suspended = row.get<bool>(5);
    info.output = row.get<std::optional<std::string>>(6).value_or("");
    if (auto status = row.get<std::optional<std::string>>(7)) {
        info.custom_status = Payload{std::move(*status)};
    }
    info.status_version = row.get<std::int64_t>(8);
    if (auto parent = row.get<std::optional<std::string>>(9)) {
        info.parent = ParentLink{.instance = std::move(*parent),
                                 .execution = row.get<ExecutionId>(10),
                                 .event = row.get<EventId>(11)};
    }
    info.last_event = row.get<EventId>(12);
    info.history_bytes = row.get<std::int64_t>(13);
    info.created = moment(row.get<std::int64_t>(14));
    info.updated = moment(row.get<std::int64_t>(15));
    if (const auto completed = row.get<std::optional<std::int64_t>>(16)) {
        info.completed = moment(*completed);
    }
    info.cron = row.get<std::optional<std::string>>(17);
    if (const auto due_us = row.get<std::int64_t>(18); due_us > 0) {
        info.due = moment(due_us);
    }
    if (const auto kind = row.get<std::optional<std::string>>(19)) {
        info.blocked = Blocked{.kind = stored_block_kind(*kind),
                               .reason = row.get<std::optional<std::string>>(20).value_or(""),
                               .build = row.get<std::optional<std::string>>(21).value_or(""),
                               .since = moment(row.get<std::int64_t>(22)),
                               .until = moment(row.get<std::int64_t>(23)),
                               .tries = static_cast<int>(row.get<std::int64_t>(24))};
    }
    info.unserved_activity = row.get<std::optional<std::string>>(25);
    return info;
}

std::vector<Run> runs_of(std::vector<std::int64_t> positions) {
    std::sort(positions.begin(), positions.end());
    std::vector<Run> runs;
    for (const std::int64_t position : positions) {
        if (!runs.empty() && position <= runs.back().last + 1) {
            runs.back().last = position;
        } else {
            runs.push_back({.first = position, .last = position});
        }
    }
    return runs;
}

HistoryText history_text(const std::vector<Event>& events) {
    HistoryText text;
    for (const Event& event : events) {
        const std::string line = encode(event);
        text.bytes += int64(line.size()) + 1;
        const bool fits =
            !text.rows.empty() && text.rows.back().lines.size() + line.size() < history_row_bytes;
        if (!fits) {
            text.rows.push_back(HistoryRow{.first = event.id, .last = event.id, .lines = {}});
        }
        HistoryRow& row = text.rows.back();
        row.last = event.id;
        ++row.count;
        if (!row.lines.empty()) {
            row.lines += '\n';
        }
        row.lines += line;
    }
    return text;
}

}  // namespace holdfast::flow
