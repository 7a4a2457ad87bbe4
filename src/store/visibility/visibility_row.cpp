#include "visibility/visibility_row.hpp"

#include <bit>

#include "id_digest.hpp"
#include "times.hpp"
#include "transaction.hpp"
#include "visibility/statements.hpp"

namespace holdfast::store {

std::string_view indexed_prefix(std::string_view name) noexcept {
    if (name.size() <= indexed_prefix_bytes) {
        return name;
    }
    std::size_t end = indexed_prefix_bytes;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) {
        --end;  // Not in the middle of a character.
    }
    return name.substr(0, end);
}

namespace {

void require_record(const sql::Dialect& dialect, const VisibilityRecord& record) {
    require_name("the workflow's id", record.workflow_id, id_bytes_max);
    require_name("the workflow's type", record.workflow_type, id_bytes_max);
    require_time("the start of a run", record.start_time);
    require_time("the first task of a run", record.execution_time);
    if (record.close_time) {
        require_time("the end of a run", *record.close_time);
    }
    if (record.memo) {
        require_blob(dialect, *record.memo);
    }
    const auto require_name_if_any = [](std::string_view what, const std::string& name) {
        if (!name.empty()) {
            require_name(what, name, id_bytes_max);
        }
    };
    require_name_if_any("the task queue's name", record.task_queue);
    require_name_if_any("the parent's id", record.parent ? record.parent->workflow_id : "");
    require_name_if_any("the root's id", record.root ? record.root->workflow_id : "");
}

// Calls `use(columns...)` with the row.
template <class Use>
auto with_row(const VisibilityRecord& record,
              std::int64_t version,
              const sql::Json& attributes,
              const Use& use) {
    const auto count = [](std::chrono::microseconds us) { return std::int64_t{us.count()}; };
    const auto workflow_of = [](const RelatedRun& run) { return run.workflow_id; };
    const auto run_of = [](const RelatedRun& run) { return run.run.value; };
    const auto map = [](const auto& value, const auto& read) {
        using Read = decltype(read(*value));
        return value ? std::optional<Read>(read(*value)) : std::nullopt;
    };
    const auto duration = map(record.execution_duration, count);
    const auto memo = map(record.memo, [](const Blob& blob) { return blob.data; });
    const auto parent = map(record.parent, workflow_of);
    const std::string root = record.root ? record.root->workflow_id : std::string{};
    return use(record.ns.value,
               record.run.value,
               version,
               record.start_time,
               record.execution_time,
               record.close_time,
               record.close_time.value_or(latest),
               record.workflow_id,
               key_digest(record.workflow_id),
               indexed_prefix(record.workflow_id),
               record.workflow_type,
               key_digest(record.workflow_type),
               indexed_prefix(record.workflow_type),
               static_cast<std::int32_t>(record.status),
               record.history_length,
               record.history_size_bytes,
               duration,
               record.state_transition_count,
               memo,
               record.memo ? record.memo->encoding : std::string{},
               record.task_queue,
               attributes,
               parent,
               map(record.parent, run_of),
               root,
               map(record.root, run_of));
}

}  // namespace

VisibilityRow::VisibilityRow(const sql::Dialect& dialect,
                             const VisibilityRecord& record,
                             std::int64_t version)
    : record_(record), version_(version) {
    require_record(dialect, record);
    attributes_ = check_attributes(record.search_attributes);
    stored_.text = attributes_.all.dump();
    require_size(dialect, stored_.text.size());
}

bool VisibilityRow::write(sql::Tx& tx, const sql::Statement& statement) const {
    return with_row(record_, version_, stored_, [&](const auto&... columns) {
        return tx.count(statement, columns...) != 0;
    });
}

void VisibilityRow::write_attributes(sql::Tx& tx) const {
    tx.exec(statements::delete_attributes, record_.ns.value, record_.run.value);
    const sql::Timestamp sort_time = record_.close_time.value_or(latest);
    // As many rows at once as the largest power of two that is left, so that there are few shapes.
    for (auto next = attributes_.searched.begin(); next != attributes_.searched.end();) {
        const auto left = static_cast<std::size_t>(std::distance(next, attributes_.searched.end()));
        const std::size_t rows = std::min(std::bit_floor(left), statements::attribute_rows_max);
        std::vector<sql::Param> args{
            record_.ns.value, sort_time, record_.start_time, record_.run.value};
        for (std::size_t row = 0; row < rows; ++row, ++next) {
            args.emplace_back(next->first);
            args.emplace_back(next->second);
        }
        const auto shape = static_cast<std::size_t>(std::countr_zero(rows));
        tx.exec(*statements::insert_attributes.at(shape), std::span<const sql::Param>(args));
    }
}

void VisibilityRow::upsert(sql::Tx& tx) const {
    with_row(record_, version_, stored_, [&](const auto&... columns) {
        tx.exec(statements::upsert_visibility, columns...);
    });
    write_attributes(tx);
}

}  // namespace holdfast::store
