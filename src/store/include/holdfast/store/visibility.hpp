// Visibility: the searchable records of runs.
//
// The copy follows the runs by tasks of its own, so it may be late, and a task may come twice or
// after a later one. Each write therefore carries a version, and an older one changes nothing. The
// newest runs come first: those that run, by their start, then those that closed, by their end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <holdfast/sql/value.hpp>
#include <holdfast/store/error.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::sql {
class Database;
}

namespace holdfast::store {

// By name. A value is a text, a number or a boolean, or a list of them, in JSON.
using SearchAttributes = std::map<std::string, sql::Json>;

struct RelatedRun {
    std::string workflow_id{};
    RunId run{};

    friend bool operator==(const RelatedRun&, const RelatedRun&) = default;
};

struct VisibilityRecord {
    NamespaceId ns{};
    RunId run{};
    std::int64_t version = 0;
    // 1 to id_bytes_max bytes of UTF-8, and so is the type. The other names may be empty.
    std::string workflow_id{};
    std::string workflow_type{};
    RunStatus status = RunStatus::running;
    sql::Timestamp start_time{};
    sql::Timestamp execution_time{};             // When its first task was due.
    std::optional<sql::Timestamp> close_time{};  // Empty: it runs.
    std::optional<std::int64_t> history_length{};
    std::optional<std::int64_t> history_size_bytes{};
    std::optional<std::chrono::microseconds> execution_duration{};
    std::optional<std::int64_t> state_transition_count{};
    std::optional<Blob> memo{};
    std::string task_queue{};
    SearchAttributes search_attributes{};
    std::optional<RelatedRun> parent{};
    std::optional<RelatedRun> root{};

    friend bool operator==(const VisibilityRecord&, const VisibilityRecord&) = default;
};

// Names of attributes are identifiers: letters, digits and _, not a digit first. A longer
// text is kept, but searches do not find it.
inline constexpr std::size_t searched_value_bytes_max = 255;
// Of a run, each element of a list. A text that is a moment takes two rows: all of them can be
// deleted and written again in one transaction of 3,000 rows, beside the run itself.
inline constexpr std::size_t attribute_values_max = 500;

// What a run is sorted by, before its id decides.
using SortKey = std::variant<std::int64_t, sql::Timestamp, std::string, Uuid>;

// Where a run stands in the order of a search.
struct VisibilityPlace {
    std::vector<SortKey> keys{};
    RunId run{};

    friend bool operator==(const VisibilityPlace&, const VisibilityPlace&) = default;
};

struct VisibilityPage {
    std::vector<VisibilityRecord> records{};
    std::optional<VisibilityPlace> next{};  // After which the next page begins; empty: that is all.
};

// A text as a literal of a filter, whatever is in it.
[[nodiscard]] std::string quoted_text(std::string_view text);

// Safe to share between threads. On PostgreSQL every call makes two round trips at most, and a
// search one.
class Visibility {
public:
    // Requires: `db` outlives this object, and its schema holds the part `store`.
    explicit Visibility(sql::Database& db) noexcept : db_(db) {}
    Visibility(const Visibility&) = delete;
    Visibility& operator=(const Visibility&) = delete;

    // A run that starts. False if it is known already: it stays as it is.
    bool insert(const VisibilityRecord& record, const Call& call = {});
    // A run as it is now. False if it is known with this version or a newer one: it stays so.
    bool replace(const VisibilityRecord& record, const Call& call = {});
    // A run that is gone already is deleted.
    void remove(NamespaceId ns, RunId run, const Call& call = {});

    [[nodiscard]] std::optional<VisibilityRecord> find(NamespaceId ns,
                                                       RunId run,
                                                       const Call& call = {}) const;
    // The newest first, unless the filter has an order, after the last of the page before. A run
    // that moves in the order meanwhile may be seen twice or not at all; the others are seen once.
    // Filters are Temporal's list filters, see docs/store.md; an empty one asks for all runs.
    // Requires: `filter` is one, and `after` comes from the same search. Else invalid_argument,
    // with the place of the mistake.
    [[nodiscard]] VisibilityPage list(NamespaceId ns,
                                      std::string_view filter,
                                      std::int64_t page_size,
                                      const std::optional<VisibilityPlace>& after = {},
                                      const Call& call = {}) const;
    // The order of the filter does not matter to these.
    [[nodiscard]] std::int64_t count(NamespaceId ns,
                                     std::string_view filter,
                                     const Call& call = {}) const;
    // Statuses that no run has are not among them.
    [[nodiscard]] std::map<RunStatus, std::int64_t> count_by_status(NamespaceId ns,
                                                                    std::string_view filter,
                                                                    const Call& call = {}) const;
    // By what the filter's GROUP BY names: ExecutionStatus, each by its name, or
    // TemporalNamespaceDivision, "" for runs without one.
    // Requires: the filter has a GROUP BY. Else invalid_argument.
    [[nodiscard]] std::map<std::string, std::int64_t> count_groups(NamespaceId ns,
                                                                   std::string_view filter,
                                                                   const Call& call = {}) const;

private:
    sql::Database& db_;
};

}  // namespace holdfast::store
