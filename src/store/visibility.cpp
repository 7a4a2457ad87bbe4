#include <holdfast/store/visibility.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "codec.hpp"
#include "door.hpp"
#include "statements_visibility.hpp"
#include <fmt/core.h>

#include <holdfast/sql/error.hpp>

namespace holdfast::store {
namespace {

using nlohmann::json;

// Times of runs lie between these. A run that has not closed is sorted as if it closed last of all.
constexpr sql::Timestamp earliest{std::chrono::sys_days{std::chrono::year{1} / 1 / 1}};
constexpr sql::Timestamp latest{std::chrono::sys_days{std::chrono::year{9999} / 12 / 31}};

void require_time(std::string_view what, sql::Timestamp time) {
    if (time <= earliest || time >= latest) {
        throw InvalidArgument(fmt::format("{} must lie in the years 1 to 9999", what));
    }
}

// What a search says of times outside of these, it says of these.
sql::Timestamp within(sql::Timestamp time) {
    return std::clamp(time, earliest, latest);
}

// ---- Search attributes ------------------------------------------------------------------------

void require_attribute_name(std::string_view name) {
    require_name("a search attribute's name", name, name_bytes_max);
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    const auto is_part = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
    if (!is_letter(name.front()) || !std::all_of(name.begin(), name.end(), is_part)) {
        throw InvalidArgument(
            fmt::format("the search attribute \"{}\" needs a name of letters, digits and _", name));
    }
}

// Of equal values the texts are equal.
json parse_value(const std::string& name, const sql::Json& value) {
    require_attribute_name(name);
    json parsed = json::parse(value.text, nullptr, false);
    const auto is_scalar = [](const json& one) {
        return one.is_string() || one.is_number() || one.is_boolean();
    };
    if (!is_scalar(parsed) &&
        !(parsed.is_array() && std::all_of(parsed.begin(), parsed.end(), is_scalar))) {
        throw InvalidArgument(
            fmt::format("the search attribute \"{}\" must be a JSON text, number or boolean, or a "
                        "list of them",
                        name));
    }
    return parsed;
}

struct Attributes {
    json all = json::object();
    std::set<std::pair<std::string, std::string>> searched;  // Name and value.
};

Attributes attributes_of(const SearchAttributes& given) {
    Attributes made;
    std::size_t values = 0;
    for (const auto& [name, value] : given) {
        json parsed = parse_value(name, value);
        const json list = parsed.is_array() ? parsed : json::array({parsed});
        values += list.size();
        for (const json& one : list) {
            std::string text = one.dump();
            if (text.size() <= searched_value_bytes_max) {
                made.searched.emplace(name, std::move(text));
            }
        }
        made.all[name] = std::move(parsed);
    }
    if (values > attribute_values_max) {
        throw InvalidArgument(fmt::format(
            "a run with {} values of search attributes; give it {}", values, attribute_values_max));
    }
    return made;
}

SearchAttributes read_attributes(const std::optional<sql::Json>& stored, const RunId& run) {
    SearchAttributes read;
    if (stored) {
        const json parsed = json::parse(stored->text, nullptr, false);
        if (!parsed.is_object()) {
            throw_damaged(fmt::format("search attributes of run {}", run.text()), "no object");
        }
        for (const auto& [name, value] : parsed.items()) {
            read.emplace(name, sql::Json{value.dump()});
        }
    }
    return read;
}

// ---- Rows -------------------------------------------------------------------------------------

void require_record(const sql::Dialect& dialect, const VisibilityRecord& record) {
    require_name("the workflow's id", record.workflow_id, name_bytes_max);
    require_name("the workflow's type", record.workflow_type, name_bytes_max);
    require_time("the start of a run", record.start_time);
    require_time("the first task of a run", record.execution_time);
    if (record.close_time) {
        require_time("the end of a run", *record.close_time);
    }
    if (record.memo) {
        require_size(dialect, *record.memo);
    }
}

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

std::int64_t write_row(sql::Tx& tx,
                       const sql::Statement& statement,
                       const VisibilityRecord& record,
                       const sql::Json& attributes) {
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
    return tx.count(statement,
                    record.ns.value,
                    record.run.value,
                    record.version,
                    record.start_time,
                    record.execution_time,
                    record.close_time,
                    record.close_time.value_or(latest),
                    record.workflow_id,
                    record.workflow_type,
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
                    record.root ? record.root->workflow_id : std::string{},
                    map(record.root, run_of));
}

// The row decides. What belongs to it is written only by who has just written it, and so has it
// for himself until he commits.
bool put(sql::Database& db,
         const Operation& operation,
         const sql::Statement& statement,
         const VisibilityRecord& record,
         const Call& call) {
    require_record(db.dialect(), record);
    const Attributes attributes = attributes_of(record.search_attributes);
    const sql::Json stored{attributes.all.dump()};
    sql::TxOptions options = options_of(operation, call);
    options.duplicate_is_conflict = true;  // Who is second to write it finds it next time.
    return db.transact(operation.name, options, [&](sql::Tx& tx) {
        if (write_row(tx, statement, record, stored) == 0) {
            return false;
        }
        tx.exec(statements::delete_attributes, record.ns.value, record.run.value);
        for (const auto& [name, value] : attributes.searched) {
            tx.exec(statements::insert_attribute,
                    record.ns.value,
                    name,
                    value,
                    record.close_time.value_or(latest),
                    record.start_time,
                    record.run.value);
        }
        return true;
    });
}

// ---- Searches ---------------------------------------------------------------------------------

// The index along which a search walks: that of the condition which leaves the fewest rows.
struct Search {
    const sql::Statement& page;
    const sql::Statement& counts;
};
Search search_for(const VisibilityFilter& filter) {
    if (filter.workflow_id) {
        return {statements::list_by_workflow, statements::count_by_workflow};
    }
    if (!filter.attributes.empty()) {
        return {statements::list_by_attribute, statements::count_by_attribute};
    }
    if (filter.workflow_type) {
        return {statements::list_by_type, statements::count_by_type};
    }
    if (filter.status) {
        return {statements::list_by_status, statements::count_by_status};
    }
    return {statements::list_by_time, statements::count_by_time};
}

// The order begins with the runs that are open. Rows of the search lie from `oldest` on, and
// before `end`.
struct Span {
    sql::Timestamp oldest;
    VisibilityPlace end;
};
Span span_of(const VisibilityFilter& filter) {
    Span span{.oldest = earliest, .end = {.sort_time = latest, .start_time = latest, .run = {}}};
    if (filter.openness == Openness::open) {
        span.oldest = latest;
    }
    if (filter.openness == Openness::closed || filter.closed_from || filter.closed_to) {
        span.end.start_time = earliest;
    }
    if (filter.closed_from) {
        span.oldest = std::max(span.oldest, within(*filter.closed_from));
    }
    if (filter.closed_to) {
        span.end.sort_time = within(within(*filter.closed_to) + std::chrono::microseconds{1});
    }
    return span;
}

using Pair = std::pair<std::string, std::string>;
std::array<Pair, filter_attributes_max> pairs_of(const VisibilityFilter& filter) {
    std::array<Pair, filter_attributes_max> pairs;
    if (filter.attributes.size() > pairs.size()) {
        throw InvalidArgument(fmt::format("a search by {} attributes; ask for {} at most",
                                          filter.attributes.size(),
                                          pairs.size()));
    }
    std::size_t at = 0;
    for (const auto& [name, value] : filter.attributes) {
        const json parsed = parse_value(name, value);
        std::string text = parsed.dump();
        if (parsed.is_array() || text.size() > searched_value_bytes_max) {
            throw InvalidArgument(
                fmt::format("the search attribute \"{}\" is searched by one value of {} bytes at "
                            "most",
                            name,
                            searched_value_bytes_max));
        }
        pairs[at++] = {name, std::move(text)};
    }
    return pairs;
}

// Calls `use(args...)` with what all searches take.
template <class Use, class... A>
auto search(NamespaceId ns,
            const VisibilityFilter& filter,
            const std::optional<VisibilityPlace>& after,
            const Use& use,
            const A&... more) {
    if (filter.workflow_id) {
        require_name("the workflow's id", *filter.workflow_id, name_bytes_max);
    }
    if (filter.workflow_type) {
        require_name("the workflow's type", *filter.workflow_type, name_bytes_max);
    }
    const Span span = span_of(filter);
    const VisibilityPlace end = after ? std::min(*after, span.end) : span.end;
    const auto pairs = pairs_of(filter);
    return use(ns.value,
               filter.workflow_id.value_or(""),
               filter.workflow_type.value_or(""),
               filter.status ? static_cast<std::int32_t>(*filter.status) : 0,
               span.oldest,
               end.sort_time,
               end.start_time,
               end.run.value,
               within(filter.started_from.value_or(earliest)),
               within(filter.started_to.value_or(latest)),
               pairs[0].first,
               pairs[0].second,
               pairs[1].first,
               pairs[1].second,
               pairs[2].first,
               pairs[2].second,
               pairs[3].first,
               pairs[3].second,
               more...);
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
                                const VisibilityFilter& filter,
                                std::int64_t page_size,
                                const std::optional<VisibilityPlace>& after,
                                const Call& call) const {
    const std::int64_t one_more = require_page_size(page_size) + 1;  // Tells whether there is.
    const auto read = [&](const auto&... args) {
        return run(db_, operation::list_visibility, call, search_for(filter).page, args...).rows;
    };
    VisibilityPage page;
    for (const sql::Row row : search(ns, filter, after, read, one_more)) {
        if (std::ssize(page.records) == page_size) {
            const VisibilityRecord& last = page.records.back();
            page.next = VisibilityPlace{.sort_time = last.close_time.value_or(latest),
                                        .start_time = last.start_time,
                                        .run = last.run};
            break;
        }
        page.records.push_back(record_of(row));
    }
    return page;
}

std::int64_t Visibility::count(NamespaceId ns,
                               const VisibilityFilter& filter,
                               const Call& call) const {
    std::int64_t total = 0;
    for (const auto& [status, runs] : count_by_status(ns, filter, call)) {
        total += runs;
    }
    return total;
}

std::map<RunStatus, std::int64_t> Visibility::count_by_status(NamespaceId ns,
                                                              const VisibilityFilter& filter,
                                                              const Call& call) const {
    const auto read = [&](const auto&... args) {
        return run(db_, operation::count_visibility, call, search_for(filter).counts, args...).rows;
    };
    std::map<RunStatus, std::int64_t> counts;
    for (const sql::Row row : search(ns, filter, std::nullopt, read)) {
        counts.emplace(RunStatus{row.get<std::int32_t>(0)}, row.get<std::int64_t>(1));
    }
    return counts;
}

}  // namespace holdfast::store
