// Which workers a list or a count is about.
//
//   TaskQueue = 'orders' AND (Status = 'Running' OR StartTime > '2026-01-02T03:04:05Z')
//
// The words are those of the query language for runs; there is no NOT before a condition, no IN and
// no LIMIT. A comparison that makes no sense for its field, or names a field that workers do not
// have, does not fail the query: no worker that it is asked about matches.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workers/registry.hpp"

#include <holdfast/sql/value.hpp>

namespace holdfast::server::workers {

class WorkerQuery {
public:
    // Throws InvalidArgument with a text that begins "malformed query: ".
    explicit WorkerQuery(std::string_view text);

    [[nodiscard]] bool matches(const Heartbeat& worker) const;

private:
    friend class WorkerQueryParser;
    using Time = sql::Timestamp;  // In microseconds, which reach beyond the year 9999.

    struct Test {
        std::string field;
        std::string symbol;  // =, !=, <, <=, >, >=, STARTS_WITH, BETWEEN or NULL.
        bool negated = false;
        std::string first;
        std::string last;  // Of BETWEEN.
    };
    // A condition, or several of which all or one must hold.
    struct Node {
        enum class Kind : std::uint8_t { test, all, any };
        Kind kind = Kind::test;
        Test test;
        std::vector<Node> parts;
    };

    // Nothing if the test makes no sense.
    [[nodiscard]] static std::optional<bool> met(const Node& node, const Heartbeat& worker);
    [[nodiscard]] static std::optional<bool> met(const Test& test, const Heartbeat& worker);
    [[nodiscard]] static std::optional<bool> text_met(const Test& test, const std::string& value);
    [[nodiscard]] static std::optional<bool> time_met(const Test& test,
                                                      const std::optional<Time>& value);

    std::optional<Node> where_;  // Nothing for all workers.
};

}  // namespace holdfast::server::workers
