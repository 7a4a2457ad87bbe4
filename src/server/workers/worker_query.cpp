#include "workers/worker_query.hpp"

#include <array>
#include <compare>
#include <utility>

#include "history/times.hpp"
#include "search_attributes/values.hpp"
#include "visibility/query_lexer.hpp"
#include <fmt/format.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/utf8.hpp>

namespace holdfast::server::workers {

namespace {

constexpr std::size_t parentheses_max = 40;
constexpr std::size_t conditions_max = 200;

std::string status_text(temporal::api::enums::v1::WorkerStatus status) {
    constexpr std::array<std::string_view, 4> names{
        "Unspecified", "Running", "ShuttingDown", "Shutdown"};
    const auto number = static_cast<std::size_t>(status);
    return number < names.size() ? std::string(names[number]) : std::to_string(number);
}

std::optional<std::string> text_field(const Heartbeat& worker, std::string_view name) {
    using Read = std::string (*)(const Heartbeat&);
    static constexpr std::array<std::pair<std::string_view, Read>, 10> fields{
        std::pair<std::string_view, Read>{
            "WorkerInstanceKey", [](const Heartbeat& it) { return it.worker_instance_key(); }},
        {"WorkerIdentity", [](const Heartbeat& it) { return it.worker_identity(); }},
        {"HostName", [](const Heartbeat& it) { return it.host_info().host_name(); }},
        {"TaskQueue", [](const Heartbeat& it) { return it.task_queue(); }},
        {"DeploymentName",
         [](const Heartbeat& it) { return it.deployment_version().deployment_name(); }},
        {"BuildId", [](const Heartbeat& it) { return it.deployment_version().build_id(); }},
        {"SdkName", [](const Heartbeat& it) { return it.sdk_name(); }},
        {"SdkVersion", [](const Heartbeat& it) { return it.sdk_version(); }},
        {"WorkerStatus", [](const Heartbeat& it) { return status_text(it.status()); }},
        {"Status", [](const Heartbeat& it) { return status_text(it.status()); }}};
    for (const auto& [field, read] : fields) {
        if (field == name) {
            return read(worker);
        }
    }
    return std::nullopt;
}

std::optional<bool> compared(const std::string& symbol, std::strong_ordering order) {
    if (symbol == "=") {
        return order == 0;
    }
    if (symbol == "!=") {
        return order != 0;
    }
    if (symbol == "<") {
        return order < 0;
    }
    if (symbol == "<=") {
        return order <= 0;
    }
    if (symbol == ">") {
        return order > 0;
    }
    return symbol == ">=" ? std::optional(order >= 0) : std::nullopt;
}

}  // namespace

// Recursive descent: one function for each rule, from the loosest to the tightest.
class WorkerQueryParser {
public:
    using Node = WorkerQuery::Node;
    using Word = visibility::Word;

    explicit WorkerQueryParser(std::string_view text) : lexer_(text) { advance(); }

    std::optional<Node> parse() {
        if (word_.kind == Word::Kind::end) {
            return std::nullopt;
        }
        Node made = any(0);
        if (word_.kind != Word::Kind::end) {
            refuse();
        }
        return made;
    }

private:
    void advance() { word_ = lexer_.next(); }
    bool take(std::string_view what) {
        const bool found = word_.is(what);
        if (found) {
            advance();
        }
        return found;
    }
    void expect(std::string_view what) {
        if (!take(what)) {
            refuse();
        }
    }
    [[noreturn]] void refuse() const {
        throw InvalidArgument(fmt::format("malformed query: syntax error at position {}{}",
                                          word_.end,
                                          word_.kind == Word::Kind::end
                                              ? std::string()
                                              : fmt::format(" near '{}'", word_.written)));
    }

    Node any(std::size_t depth) { return joined(depth, "OR", Node::Kind::any); }
    Node joined(std::size_t depth, std::string_view word, Node::Kind kind) {
        const auto part = [&] {
            return kind == Node::Kind::any ? joined(depth, "AND", Node::Kind::all) : one(depth);
        };
        Node first = part();
        if (!word_.is(word)) {
            return first;
        }
        Node made{.kind = kind, .test = {}, .parts = {}};
        made.parts.push_back(std::move(first));
        while (take(word)) {
            made.parts.push_back(part());
        }
        return made;
    }

    Node one(std::size_t depth) {
        if (!word_.is("(")) {
            return comparison();
        }
        if (depth == parentheses_max) {
            throw InvalidArgument(fmt::format(
                "malformed query: more than {} parentheses in each other", parentheses_max));
        }
        advance();
        Node made = any(depth + 1);
        expect(")");
        return made;
    }

    Node comparison() {
        if (word_.kind != Word::Kind::name || word_.reserved) {
            refuse();
        }
        if (++conditions_ > conditions_max) {
            throw InvalidArgument(
                fmt::format("malformed query: more than {} conditions", conditions_max));
        }
        Node made;
        made.test.field = word_.meaning;
        advance();
        if (take("IS")) {
            made.test.negated = take("NOT");
            made.test.symbol = "NULL";
            expect("NULL");
            return made;
        }
        made.test.negated = take("NOT");
        if (take("BETWEEN")) {
            made.test.symbol = "BETWEEN";
            made.test.first = literal();
            expect("AND");
            made.test.last = literal();
            return made;
        }
        if (take("STARTS_WITH")) {
            made.test.symbol = "STARTS_WITH";
        } else if (!made.test.negated && is_symbol()) {
            made.test.symbol = word_.meaning;
            advance();
        } else {
            refuse();
        }
        made.test.first = literal();
        return made;
    }

    [[nodiscard]] bool is_symbol() const {
        return word_.is("=") || word_.is("!=") || word_.is("<") || word_.is("<=") ||
               word_.is(">") || word_.is(">=");
    }

    std::string literal() {
        if (word_.kind != Word::Kind::text) {
            refuse();
        }
        std::string text = word_.meaning;
        advance();
        return text;
    }

    visibility::QueryLexer lexer_;
    Word word_;
    std::size_t conditions_ = 0;
};

WorkerQuery::WorkerQuery(std::string_view text) {
    if (!is_utf8(text)) {
        throw InvalidArgument("malformed query: it is not a text of UTF-8");
    }
    where_ = WorkerQueryParser(text).parse();
}

bool WorkerQuery::matches(const Heartbeat& worker) const {
    return !where_ || met(*where_, worker).value_or(false);
}

std::optional<bool> WorkerQuery::met(const Node& node, const Heartbeat& worker) {
    if (node.kind == Node::Kind::test) {
        return met(node.test, worker);
    }
    const bool decides = node.kind == Node::Kind::any;
    for (const Node& part : node.parts) {
        const std::optional<bool> one = met(part, worker);
        if (!one || *one == decides) {
            return one;
        }
    }
    return !decides;
}

std::optional<bool> WorkerQuery::met(const Test& test, const Heartbeat& worker) {
    const auto moment = [](bool given, const google::protobuf::Timestamp& time) {
        return given ? std::optional<Time>(
                           std::chrono::floor<std::chrono::microseconds>(history::time_of(time)))
                     : std::nullopt;
    };
    if (test.field == "StartTime") {
        return time_met(test, moment(worker.has_start_time(), worker.start_time()));
    }
    if (test.field == "HeartbeatTime") {
        return time_met(test, moment(worker.has_heartbeat_time(), worker.heartbeat_time()));
    }
    const std::optional<std::string> value = text_field(worker, test.field);
    return value ? text_met(test, *value) : std::nullopt;
}

std::optional<bool> WorkerQuery::text_met(const Test& test, const std::string& value) {
    if (test.symbol == "NULL") {
        return value.empty() != test.negated;
    }
    if (test.symbol == "STARTS_WITH") {
        return value.starts_with(test.first) != test.negated;
    }
    if (test.symbol == "=" || test.symbol == "!=") {
        return compared(test.symbol, value <=> test.first);
    }
    return std::nullopt;
}

std::optional<bool> WorkerQuery::time_met(const Test& test, const std::optional<Time>& value) {
    if (test.symbol == "NULL") {
        return !value == !test.negated;
    }
    const std::optional<Time> first = search_attributes::parse_datetime(test.first);
    if (!first || test.symbol == "STARTS_WITH") {
        return std::nullopt;
    }
    if (test.symbol != "BETWEEN") {
        return value ? compared(test.symbol, *value <=> *first) : std::optional(false);
    }
    const std::optional<Time> last = search_attributes::parse_datetime(test.last);
    if (!last) {
        return std::nullopt;
    }
    return value ? (*first <= *value && *value <= *last) != test.negated : false;
}

}  // namespace holdfast::server::workers
