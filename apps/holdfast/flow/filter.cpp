#include "flow/filter.hpp"

#include <charconv>
#include <utility>

#include "cli/times.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow_engine/payload.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::app {
namespace {

constexpr std::string_view separator = " and ";
constexpr std::string_view attribute_prefix = "attribute.";

// As a workflow writes it: 7.0 is the number 7, and a text has one spelling.
std::string canonical(std::string_view json) {
    const std::size_t first = json.find_first_not_of(" \t\r\n");
    json = json.substr(first, json.find_last_not_of(" \t\r\n") + 1 - first);
    if (json.starts_with('"')) {
        return flow::Codec<std::string>::encode(flow::Codec<std::string>::decode(json));
    }
    double number = 0;
    const char* const end = json.data() + json.size();
    const auto [rest, failure] = std::from_chars(json.data(), json.data() + json.size(), number);
    const bool integer = json.find_first_of(".eE") == std::string_view::npos;
    if (rest == end && failure == std::errc{} && !integer) {
        return flow::Codec<double>::encode(number);
    }
    return std::string(json);
}

// NAME=JSON
std::pair<std::string, flow::Payload> attribute_of(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || !flow::is_json(text.substr(equals + 1))) {
        throw InvalidArgument(fmt::format(
            "attribute '{}' is not NAME=JSON; a text needs its quotes, as in city=\"Ulm\"", text));
    }
    return {text.substr(0, equals), flow::Payload{canonical(text.substr(equals + 1))}};
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

// At `separator`, but not inside of a JSON text.
std::vector<std::string_view> terms_of(std::string_view text) {
    std::vector<std::string_view> terms;
    bool quoted = false;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (quoted && text[i] == '\\') {
            ++i;
        } else if (text[i] == '"') {
            quoted = !quoted;
        } else if (!quoted && text.substr(i, separator.size()) == separator) {
            terms.push_back(trimmed(text.substr(begin, i - begin)));
            begin = i + separator.size();
            i = begin - 1;
        }
    }
    terms.push_back(trimmed(text.substr(begin)));
    return terms;
}

std::string* condition_named(FlowFilter& filter, std::string_view name) {
    const std::initializer_list<std::pair<std::string_view, std::string*>> conditions{
        {"status", &filter.status},
        {"workflow", &filter.workflow},
        {"version", &filter.version},
        {"prefix", &filter.prefix},
        {"younger-than", &filter.younger_than},
        {"older-than", &filter.older_than}};
    for (const auto& [known, condition] : conditions) {
        if (known == name) {
            return condition;
        }
    }
    return nullptr;
}

[[noreturn]] void refuse_term(std::string_view term, std::string_view why) {
    throw InvalidArgument(
        fmt::format("--where '{}' {}; write it like 'status=failed and workflow=shop.pay', with "
                    "status, workflow, version, prefix, younger-than, older-than, attribute.NAME",
                    term,
                    why));
}

}  // namespace

FlowFilter parse_filter(std::string_view text) {
    FlowFilter filter;
    if (trimmed(text).empty()) {
        return filter;
    }
    for (const std::string_view term : terms_of(text)) {
        const std::size_t equals = term.find('=');
        if (equals == std::string_view::npos) {
            refuse_term(term, "is not NAME=VALUE");
        }
        const std::string_view name = trimmed(term.substr(0, equals));
        const std::string value(trimmed(term.substr(equals + 1)));
        if (value.empty()) {
            refuse_term(term, "has no value");
        }
        if (name.starts_with(attribute_prefix)) {
            filter.attributes.push_back(
                fmt::format("{}={}", name.substr(attribute_prefix.size()), value));
            continue;
        }
        std::string* const condition = condition_named(filter, name);
        if (condition == nullptr) {
            refuse_term(term, "is not a condition");
        }
        if (!condition->empty()) {
            refuse_term(term, "is given twice");
        }
        *condition = value;
    }
    return filter;
}

flow::ListInstances listing_of(const FlowFilter& filter, FlowAccess& flows) {
    flow::ListInstances ask{
        .name = filter.workflow, .version = filter.version, .id_prefix = filter.prefix};
    ask.suspended = filter.status == "suspended";
    ask.blocked = filter.status == "blocked";
    if (!filter.status.empty() && !ask.suspended && !ask.blocked) {
        ask.status = flow::status_named(filter.status);
        if (!ask.status) {
            throw InvalidArgument(
                fmt::format("status '{}' is unknown; choose from pending, running, blocked, "
                            "suspended, completed, failed, cancelled",
                            filter.status));
        }
    }
    for (const std::string& text : filter.attributes) {
        ask.attributes.insert(attribute_of(text));
    }
    if (!filter.younger_than.empty()) {
        ask.created_after = flows.now() - duration_of("--younger-than", filter.younger_than);
    }
    if (!filter.older_than.empty()) {
        ask.created_before = flows.now() - duration_of("--older-than", filter.older_than);
    }
    return ask;
}

}  // namespace holdfast::app
