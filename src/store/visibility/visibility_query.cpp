#include "visibility/visibility_query.hpp"

#include <algorithm>
#include <bit>

#include "id_digest.hpp"
#include "times.hpp"
#include "visibility/search_attributes.hpp"
#include "visibility/statements.hpp"
#include "visibility/visibility_row.hpp"
#include <fmt/core.h>
#include <fmt/ranges.h>

namespace holdfast::store {
namespace {

using filter::Condition;
using filter::Node;
using filter::Test;
using filter::Type;

bool is_one_value(const Condition& condition) {
    return condition.test == Test::one_of && condition.values.size() == 1 && !condition.negated;
}
bool is_one_id(const Condition& condition) {
    return is_one_value(condition) && condition.field != nullptr &&
           (condition.field->name == "WorkflowId" || condition.field->name == "RunId");
}

// A text after all that begin with this one: as many of the last character that there is as no
// name or searched value has bytes.
std::string after_prefix(std::string prefix) {
    static_assert(id_bytes_max >= searched_value_bytes_max);
    for (std::size_t bytes = 0; bytes <= id_bytes_max; bytes += 4) {
        prefix += "\U0010FFFF";
    }
    return prefix;
}

std::string_view symbol_of(Test test, bool negated) {
    switch (test) {
        case Test::less:
            return negated ? ">=" : "<";
        case Test::less_or_equal:
            return negated ? ">" : "<=";
        case Test::greater:
            return negated ? "<=" : ">";
        case Test::greater_or_equal:
            return negated ? "<" : ">=";
        default:
            return negated ? "<>" : "=";
    }
}

bool fits(const SortKey& key, Type type) {
    switch (type) {
        case Type::text:
            return std::holds_alternative<std::string>(key);
        case Type::id:
            return std::holds_alternative<Uuid>(key);
        case Type::time:
            return std::holds_alternative<sql::Timestamp>(key);
        default:
            return std::holds_alternative<std::int64_t>(key);
    }
}

void require_place(const std::vector<filter::Order>& order, const VisibilityPlace& place) {
    const bool same = std::equal(
        order.begin(),
        order.end(),
        place.keys.begin(),
        place.keys.end(),
        [](const filter::Order& by, const SortKey& key) { return fits(key, by.field->type); });
    if (!same) {
        throw InvalidArgument("the page begins at a place of another order; ask for the first one");
    }
}

}  // namespace

VisibilityQuery::VisibilityQuery(NamespaceId ns, const filter::Filter& filter) : filter_(filter) {
    const std::string in = parameter(sql::Param(ns.value));  // Is copied.
    where_ = fmt::format("v.namespace_id = {}", in);
    if (filter.where) {
        begin(*filter.where);
        if (first_ != nullptr) {
            where_ += fmt::format(" AND v.run_id = a.run_id AND a.namespace_id = {}", in);
        }
        where_ += fmt::format(" AND {}", text_of(*filter.where));
    }
}

void VisibilityQuery::begin(const Node& where) {
    std::vector<const Condition*> must;
    if (where.kind == Node::Kind::condition) {
        must.push_back(&where.condition);
    } else if (where.kind == Node::Kind::all) {
        for (const Node& part : where.parts) {
            if (part.kind == Node::Kind::condition) {
                must.push_back(&part.condition);
            }
        }
    }
    for (const Condition* const condition : must) {
        if (is_one_id(*condition)) {
            first_ = nullptr;
            return;
        }
        if (first_ == nullptr && condition->field == nullptr && is_one_value(*condition)) {
            first_ = condition;
        }
    }
}

sql::BuiltQuery VisibilityQuery::page(const std::optional<VisibilityPlace>& after,
                                      std::int64_t rows) && {
    std::vector<SortColumn> columns;
    std::string keys;
    std::string order;
    for (const filter::Order& by : filter_.order) {
        columns.push_back({.text = sort_key(by), .descending = by.descending});
        keys += fmt::format(", {}", columns.back().text);
    }
    columns.push_back({.text = column("run_id"), .descending = columns.back().descending});
    for (const SortColumn& by : columns) {
        order += fmt::format(
            "{}{} {}", order.empty() ? "" : ", ", by.text, by.descending ? "DESC" : "ASC");
    }
    if (after) {
        where_ += fmt::format(" AND {}", comes_after(*after, columns));
    }
    const std::string limit = parameter(sql::Param(rows));
    return {.name = "store.list_visibility",
            .text = fmt::format("SELECT {}{} {} ORDER BY {} LIMIT {}",
                                statements::visible_columns,
                                keys,
                                from_and_where(),
                                order,
                                limit),
            .args = std::move(args_)};
}

sql::BuiltQuery VisibilityQuery::counts() && {
    return {.name = "store.count_visibility",
            .text = fmt::format("SELECT v.status, count(*) {} GROUP BY v.status", from_and_where()),
            .args = std::move(args_)};
}

sql::BuiltQuery VisibilityQuery::counts_by(const std::string& attribute) && {
    const std::string name = parameter(sql::Param(attribute));
    const std::string with_it = fmt::format(
        " LEFT JOIN visibility_attributes g ON g.namespace_id = v.namespace_id "
        "AND g.run_id = v.run_id AND g.name = {} AND g.value >= {} AND g.value < {}",
        name,
        own("t"),
        own("u"));  // The texts of it.
    return {.name = "store.count_visibility_groups",
            .text = fmt::format("SELECT g.value, count(*) {} GROUP BY g.value",
                                from_and_where(with_it)),
            .args = std::move(args_)};
}

// SQLite joins CROSS in the order of the text.
std::string VisibilityQuery::from_and_where(std::string_view joined) const {
    return fmt::format("FROM {}executions_visibility v{} WHERE {}",
                       first_ == nullptr ? "" : "visibility_attributes a CROSS JOIN ",
                       joined,
                       where_);
}

// ---- Conditions -------------------------------------------------------------------------------

std::string VisibilityQuery::text_of(const Node& node) {
    if (node.kind == Node::Kind::condition) {
        return text_of(node.condition);
    }
    std::vector<std::string> parts;
    parts.reserve(node.parts.size());
    for (const Node& part : node.parts) {
        parts.push_back(text_of(part));
    }
    return fmt::format("({})", fmt::join(parts, node.kind == Node::Kind::all ? " AND " : " OR "));
}

std::string VisibilityQuery::text_of(const Condition& condition) {
    if (condition.field != nullptr) {
        return field_test(condition);
    }
    if (&condition == first_) {
        return fmt::format("a.name = {} AND a.value = {}",
                           parameter(sql::Param(condition.attribute)),
                           parameter(condition.values.front()));
    }
    return attribute_test(condition);
}

std::string VisibilityQuery::field_test(const Condition& condition) {
    const std::string name = column(condition.field->column);
    const bool may_be_open = condition.field->name == "CloseTime";
    if (condition.test != Test::null) {
        std::string text = compared(name, condition, condition.negated);
        // Both leave the same rows. COALESCE keeps PostgreSQL from taking them for two conditions
        // of which each leaves a few: it would expect too little to walk along the index.
        if (const std::string by_index = indexed_test(condition); !by_index.empty()) {
            text = fmt::format("({} AND COALESCE({}, FALSE))", by_index, text);
        }
        if (may_be_open) {
            text = fmt::format("({} AND {} < {})", text, name, parameter(sql::Param(latest)));
        }
        return text;
    }
    if (may_be_open) {
        return fmt::format(
            "{} {} {}", name, condition.negated ? "<" : "=", parameter(sql::Param(latest)));
    }
    return fmt::format("{} IS {}NULL", name, condition.negated ? "NOT " : "");
}

// What an index can answer, besides the comparison itself: long names are not in its key.
std::string VisibilityQuery::indexed_test(const Condition& condition) {
    if (condition.negated || condition.field->digest.empty() || condition.values.empty()) {
        return {};
    }
    if (condition.test == Test::one_of) {
        Condition digests = condition;
        for (filter::Value& value : digests.values) {
            value = key_digest(std::get<std::string>(value));
        }
        return compared(column(condition.field->digest), digests, false);
    }
    if (condition.test != Test::starts_with) {
        return {};
    }
    const auto& prefix = std::get<std::string>(condition.values[0]);
    const std::string beginning = column(condition.field->beginning);
    if (prefix.size() <= indexed_prefix_bytes) {
        return compared(beginning, condition, false);
    }
    return fmt::format("{} = {}", beginning, own(std::string(indexed_prefix(prefix))));
}

// A run has an attribute if it has a value of it, and a list has several.
std::string VisibilityQuery::attribute_test(const Condition& condition) {
    if (condition.test == Test::null) {
        return fmt::format(
            "{}{}", condition.negated ? "" : "NOT ", has_attribute(condition.attribute, ""));
    }
    std::string test = compared("x.value", condition, false);
    const char kind = std::get<std::string>(condition.values.front()).front();
    if (condition.test == Test::less || condition.test == Test::less_or_equal) {
        test += fmt::format(" AND x.value >= {}", own({kind}));
    } else if (condition.test == Test::greater || condition.test == Test::greater_or_equal) {
        test += fmt::format(" AND x.value < {}", own({static_cast<char>(kind + 1)}));
    }
    std::string met = has_attribute(condition.attribute, " AND " + test);
    if (!condition.negated) {
        return met;
    }
    return fmt::format("({} AND NOT {})", has_attribute(condition.attribute, ""), met);
}

// IS TRUE keeps PostgreSQL from making a join of it: hundreds of joins take minutes to plan, and a
// look at each row as it comes keeps the order of the index.
std::string VisibilityQuery::has_attribute(const std::string& name, const std::string& and_also) {
    return fmt::format(
        "((EXISTS (SELECT 1 FROM visibility_attributes x WHERE x.namespace_id = v.namespace_id "
        "AND x.run_id = v.run_id AND x.name = {}{})) IS TRUE)",
        parameter(sql::Param(name)),
        and_also);
}

std::string VisibilityQuery::compared(const std::string& column,
                                      const Condition& condition,
                                      bool negated) {
    const auto& values = condition.values;
    if (values.empty()) {  // Nothing is one of them, and all that there is is not.
        return fmt::format("{} {} {}", column, negated ? "=" : "<>", column);
    }
    if (condition.test == Test::between) {
        return fmt::format("({} {} {} {} {} {} {})",
                           column,
                           negated ? "<" : ">=",
                           parameter(values[0]),
                           negated ? "OR" : "AND",
                           column,
                           negated ? ">" : "<=",
                           parameter(values[1]));
    }
    if (condition.test == Test::starts_with) {
        const auto& prefix = std::get<std::string>(values[0]);
        return fmt::format("({} {} {} {} {} {} {})",
                           column,
                           negated ? "<" : ">=",
                           parameter(values[0]),
                           negated ? "OR" : "AND",
                           column,
                           negated ? ">" : "<=",
                           own(after_prefix(prefix)));
    }
    if (values.size() == 1) {
        return fmt::format(
            "{} {} {}", column, symbol_of(condition.test, negated), parameter(values[0]));
    }
    // As many parameters as a power of two, so that there are few shapes.
    const std::size_t count = std::bit_ceil(values.size());
    std::vector<std::string> list;
    list.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        list.push_back(parameter(values[std::min(i, values.size() - 1)]));
    }
    return fmt::format("{} {}IN ({})", column, negated ? "NOT " : "", fmt::join(list, ", "));
}

// ---- Places -----------------------------------------------------------------------------------

std::string VisibilityQuery::comes_after(const VisibilityPlace& place,
                                         const std::vector<SortColumn>& columns) {
    require_place(filter_.order, place);
    std::vector<std::string> values;
    values.reserve(columns.size());
    for (const SortKey& key : place.keys) {
        values.push_back(
            std::visit([&](const auto& one) { return parameter(sql::Param(one)); }, key));
    }
    values.push_back(parameter(sql::Param(place.run.value)));
    const auto symbol = [](const SortColumn& by) { return by.descending ? "<" : ">"; };
    const bool one_way = std::ranges::all_of(
        columns, [&](const SortColumn& by) { return by.descending == columns[0].descending; });
    if (one_way) {
        std::vector<std::string> texts;
        texts.reserve(columns.size());
        for (const SortColumn& by : columns) {
            texts.push_back(by.text);
        }
        return fmt::format("({}) {} ({})",  // An index is walked by this form only.
                           fmt::join(texts, ", "),
                           symbol(columns[0]),
                           fmt::join(values, ", "));
    }
    std::string text;
    for (std::size_t i = columns.size(); i-- > 0;) {
        const SortColumn& by = columns[i];
        const std::string beyond = fmt::format("{} {} {}", by.text, symbol(by), values[i]);
        text = text.empty()
                   ? beyond
                   : fmt::format("({} OR ({} = {} AND {}))", beyond, by.text, values[i], text);
    }
    return text;
}

// What the rows of an attribute have, too, is read from them, in their order.
std::string VisibilityQuery::column(std::string_view name) const {
    const bool shared = name == "sort_time" || name == "start_time" || name == "run_id";
    return fmt::format("{}.{}", first_ != nullptr && shared ? 'a' : 'v', name);
}

// Never NULL: what is not known comes last, as in PostgreSQL.
std::string VisibilityQuery::sort_key(const filter::Order& order) {
    std::string name = column(order.field->column);
    if (!order.field->nullable) {
        return name;
    }
    std::string last = "9223372036854775807";
    if (order.field->type == Type::text) {
        last = own(after_prefix(""));
    } else if (order.field->type == Type::id) {
        Uuid last_of_all;
        last_of_all.bytes.fill(std::byte{0xff});
        last = parameter(sql::Param(last_of_all));
    }
    return fmt::format("COALESCE({}, {})", name, last);
}

std::string VisibilityQuery::parameter(const sql::Param& value) {
    args_.push_back(value);
    return fmt::format("${}", args_.size());
}

std::string VisibilityQuery::parameter(const filter::Value& value) {
    return std::visit([&](const auto& one) { return parameter(sql::Param(one)); }, value);
}

std::string VisibilityQuery::own(std::string text) {
    return parameter(sql::Param(texts_.emplace_back(std::move(text))));
}

}  // namespace holdfast::store
