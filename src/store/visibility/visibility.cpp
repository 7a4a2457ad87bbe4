#include <holdfast/store/visibility.hpp>

#include <utility>

#include "times.hpp"
#include "transaction.hpp"
#include "visibility/filter.hpp"
#include "visibility/filter_values.hpp"
#include "visibility/search_attributes.hpp"
#include "visibility/statements.hpp"
#include "visibility/visibility_query.hpp"
#include "visibility/visibility_row.hpp"
#include <fmt/core.h>

namespace holdfast::store {
namespace {

// ---- Rows -------------------------------------------------------------------------------------

std::optional<RelatedRun> related(const sql::Row& row, std::size_t column) {
    const auto run = row.get<std::optional<Uuid>>(column + 1);
    if (!run) {
        return std::nullopt;
    }
    return RelatedRun{.workflow_id = row.get<std::string>(column), .run = RunId{*run}};
}

VisibilityRecord record_of(const sql::Row& row) {
    VisibilityRecord made{
        .ns = NamespaceId{row.get<Uuid>(0)},
        .run = RunId{row.get<Uuid>(1)},
        .version = row.get<std::int64_t>(2),
        .workflow_id = row.get<std::string>(6),
        .workflow_type = row.get<std::string>(7),
        .status = RunStatus{row.get<std::int32_t>(8)},
        .start_time = row.get<sql::Timestamp>(3),
        .execution_time = row.get<sql::Timestamp>(4),
        .close_time = row.get<std::optional<sql::Timestamp>>(5),
        .history_length = row.get<std::optional<std::int64_t>>(9),
        .history_size_bytes = row.get<std::optional<std::int64_t>>(10),
        .state_transition_count = row.get<std::optional<std::int64_t>>(12),
        .task_queue = row.get<std::string>(15),
        .parent = related(row, 17),
        .root = related(row, 19),
    };
    if (const auto duration = row.get<std::optional<std::int64_t>>(11)) {
        made.execution_duration = std::chrono::microseconds{*duration};
    }
    if (auto memo = row.get<std::optional<sql::Bytes>>(13)) {
        made.memo = Blob{.data = std::move(*memo), .encoding = row.get<std::string>(14)};
    }
    made.search_attributes = read_attributes(row.get<std::optional<sql::Json>>(16), made.run);
    return made;
}

// The row decides. Its attributes are written only by the transaction that has just written the
// row, and so holds it until its commit.
bool put(sql::Database& db,
         const Operation& operation,
         const sql::Statement& statement,
         const VisibilityRecord& record,
         const Call& call) {
    const VisibilityRow row(db.dialect(), record, record.version);
    sql::TxOptions options = options_of(operation, call);
    options.on_duplicate = sql::OnDuplicate::retry;  // The second writer finds it on retry.
    return transact(db, operation, options, [&](sql::Tx& tx) {
        if (!row.write(tx, statement)) {
            return false;
        }
        row.write_attributes(tx);
        return true;
    });
}

// ---- Searches ---------------------------------------------------------------------------------

SortKey key_of(const sql::Row& row, std::size_t column, filter::Type type) {
    switch (type) {
        case filter::Type::text:
            return row.get<std::string>(column);
        case filter::Type::id:
            return row.get<Uuid>(column);
        case filter::Type::time:
            return row.get<sql::Timestamp>(column);
        default:
            return row.get<std::int64_t>(column);
    }
}

VisibilityPlace place_of(const sql::Row& row, const std::vector<filter::Order>& order) {
    VisibilityPlace place{.run = RunId{row.get<Uuid>(1)}};
    std::size_t column = row.columns() - order.size();
    for (const filter::Order& by : order) {
        place.keys.push_back(key_of(row, column++, by.field->type));
    }
    return place;
}

std::map<RunStatus, std::int64_t> count_parsed(sql::Database& db,
                                               NamespaceId ns,
                                               const filter::Filter& parsed,
                                               const Call& call) {
    VisibilityQuery query(ns, parsed);
    std::map<RunStatus, std::int64_t> counts;
    for (const sql::Row row :
         run(db, operation::count_visibility, call, std::move(query).counts()).rows) {
        counts.emplace(RunStatus{row.get<std::int32_t>(0)}, row.get<std::int64_t>(1));
    }
    return counts;
}

}  // namespace

bool Visibility::insert(const VisibilityRecord& record, const Call& call) {
    return put(db_, operation::insert_visibility, statements::insert_visibility, record, call);
}

bool Visibility::replace(const VisibilityRecord& record, const Call& call) {
    return put(db_, operation::replace_visibility, statements::replace_visibility, record, call);
}

void Visibility::remove(NamespaceId ns, RunId run, const Call& call) {
    transact(db_, operation::delete_visibility, call, [&](sql::Tx& tx) {
        // Without a row nothing belongs to it, unless it is inserted at this moment.
        if (tx.count(statements::delete_visibility, ns.value, run.value) != 0) {
            tx.exec(statements::delete_attributes, ns.value, run.value);
        }
    });
}

std::optional<VisibilityRecord> Visibility::find(NamespaceId ns,
                                                 RunId run,
                                                 const Call& call) const {
    const sql::Result found = store::run(
        db_, operation::get_visibility, call, statements::find_visibility, ns.value, run.value);
    const auto row = found.rows.single();
    return row ? std::optional(record_of(*row)) : std::nullopt;
}

VisibilityPage Visibility::list(NamespaceId ns,
                                std::string_view filter,
                                std::int64_t page_size,
                                const std::optional<VisibilityPlace>& after,
                                const Call& call) const {
    const std::int64_t one_more = require_page_size(page_size) + 1;  // Tells whether there is.
    const filter::Filter parsed = filter::parse(filter);
    if (parsed.groups != filter::Groups::none) {
        throw InvalidArgument("runs are not listed by GROUP BY; count them, or leave it out");
    }
    VisibilityQuery query(ns, parsed);
    const sql::Rows rows =
        run(db_, operation::list_visibility, call, std::move(query).page(after, one_more)).rows;
    VisibilityPage page;
    for (const sql::Row row : rows) {
        if (std::ssize(page.records) == page_size) {
            page.next = place_of(rows[page.records.size() - 1], parsed.order);
            break;
        }
        page.records.push_back(record_of(row));
    }
    return page;
}

std::int64_t Visibility::count(NamespaceId ns, std::string_view filter, const Call& call) const {
    std::int64_t total = 0;
    for (const auto& [status, runs] : count_parsed(db_, ns, filter::parse(filter), call)) {
        total += runs;
    }
    return total;
}

std::map<RunStatus, std::int64_t> Visibility::count_by_status(NamespaceId ns,
                                                              std::string_view filter,
                                                              const Call& call) const {
    const filter::Filter parsed = filter::parse(filter);
    if (parsed.groups == filter::Groups::by_division) {
        throw InvalidArgument(
            "runs are counted by their status here; count groups for another GROUP BY");
    }
    return count_parsed(db_, ns, parsed, call);
}

std::map<std::string, std::int64_t> Visibility::count_groups(NamespaceId ns,
                                                             std::string_view filter,
                                                             const Call& call) const {
    const filter::Filter parsed = filter::parse(filter);
    std::map<std::string, std::int64_t> counts;
    if (parsed.groups == filter::Groups::none) {
        throw InvalidArgument("there are no groups to count; end the filter with GROUP BY");
    }
    if (parsed.groups == filter::Groups::by_status) {
        for (const auto& [status, runs] : count_parsed(db_, ns, parsed, call)) {
            counts.emplace(filter::name_of(status), runs);
        }
        return counts;
    }
    const std::string attribute{filter::division};
    VisibilityQuery query(ns, parsed);
    const sql::Rows rows =
        run(db_, operation::count_visibility, call, std::move(query).counts_by(attribute)).rows;
    for (const sql::Row row : rows) {
        const auto key = row.get<std::optional<std::string>>(0);
        counts[key ? key->substr(1) : std::string{}] += row.get<std::int64_t>(1);
    }
    return counts;
}

std::string quoted_text(std::string_view text) {
    std::string made = "'";
    for (const char c : text) {
        made += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string{c};
    }
    return made + "'";
}

}  // namespace holdfast::store
