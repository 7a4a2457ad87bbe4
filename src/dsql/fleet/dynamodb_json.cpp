#include "fleet/dynamodb_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "auth/sigv4.hpp"
#include <fmt/core.h>

namespace holdfast::dsql::dynamo {
namespace {

using nlohmann::json;

json value_to_json(const Value& value) {
    if (const auto* text = std::get_if<std::string>(&value)) {
        return {{"S", *text}};
    }
    return {{"N", std::to_string(std::get<std::int64_t>(value))}};
}

void add_condition(const Write& write, json& request) {
    if (!write.condition.empty()) {
        request["ConditionExpression"] = write.condition;
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD";
    }
    if (!write.names.empty()) {
        request["ExpressionAttributeNames"] = write.names;
    }
    if (!write.values.empty()) {
        request["ExpressionAttributeValues"] = to_json(write.values);
    }
}

}  // namespace

std::optional<std::int64_t> number(const Item& item, const std::string& name) {
    const auto found = item.find(name);
    const auto* value = found == item.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
    return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::string> text(const Item& item, const std::string& name) {
    const auto found = item.find(name);
    const auto* value = found == item.end() ? nullptr : std::get_if<std::string>(&found->second);
    return value == nullptr ? std::nullopt : std::optional(*value);
}

json to_json(const Item& item) {
    json object = json::object();
    for (const auto& [name, value] : item) {
        object[name] = value_to_json(value);
    }
    return object;
}

std::string text_in(const json& answer, const char* field) {
    const auto found = answer.find(field);
    return found != answer.end() && found->is_string() ? found->get<std::string>() : std::string();
}

json list_in(const json& answer, const char* field) {
    const auto found = answer.find(field);
    return found != answer.end() && found->is_array() ? *found : json::array();
}

json object_in(const json& answer, const char* field) {
    const auto found = answer.find(field);
    return found != answer.end() && found->is_object() ? *found : json::object();
}

Item from_json(const json& object) {
    Item item;
    for (const auto& [name, value] : object.items()) {
        if (value.contains("S")) {
            item[name] = text_in(value, "S");
        } else if (value.contains("N")) {
            const std::string digits = text_in(value, "N");
            std::int64_t n = 0;
            const auto [end, fault] =
                std::from_chars(digits.data(), digits.data() + digits.size(), n);
            if (fault == std::errc{} && end == digits.data() + digits.size()) {
                item[name] = n;
            }
        }
    }
    return item;
}

std::optional<Item> item_in(const json& answer, const char* field) {
    const auto found = answer.find(field);
    if (found == answer.end() || !found->is_object() || found->empty()) {
        return std::nullopt;
    }
    return from_json(*found);
}

std::string operation_of(const Write& write) {
    switch (write.kind) {
        case Write::Kind::put:
            return "PutItem";
        case Write::Kind::update:
            return "UpdateItem";
        case Write::Kind::erase:
            return "DeleteItem";
    }
    return "UpdateItem";
}

json request_of(const Write& write) {
    json request{{"TableName", write.table}};
    if (write.kind == Write::Kind::put) {
        Item item = write.item;
        item["pk"] = write.pk;
        request["Item"] = to_json(item);
    } else {
        request["Key"] = to_json({{"pk", write.pk}});
    }
    if (write.kind == Write::Kind::update) {
        request["UpdateExpression"] = write.update;
        request["ReturnValues"] = "ALL_NEW";
    }
    add_condition(write, request);
    return request;
}

json part_of_transaction(const Write& write) {
    json request = request_of(write);
    request.erase("ReturnValues");
    constexpr std::array names{"Put", "Update", "Delete"};
    return {{names[static_cast<std::size_t>(write.kind)], std::move(request)}};
}

std::string error_name(const json& answer) {
    const std::string type = text_in(answer, "__type");
    const std::size_t hash = type.rfind('#');
    return hash == std::string::npos ? type : type.substr(hash + 1);
}

bool is_passing(const std::string& error, int status) {
    constexpr std::array<std::string_view, 7> names{"ProvisionedThroughputExceededException",
                                                    "ThrottlingException",
                                                    "RequestLimitExceeded",
                                                    "TransactionConflictException",
                                                    "TransactionInProgressException",
                                                    "InternalServerError",
                                                    "ServiceUnavailable"};
    return status >= 500 || std::find(names.begin(), names.end(), error) != names.end();
}

std::optional<std::chrono::sys_seconds> parse_http_date(const std::string& text) {
    constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (text.size() != 29 || !text.ends_with(" GMT")) {
        return std::nullopt;
    }
    const std::size_t month = months.find(text.substr(8, 3));
    if (month == std::string_view::npos || month % 3 != 0) {
        return std::nullopt;
    }
    std::string digits = text.substr(17, 8);
    std::erase(digits, ':');
    const std::string stamp =
        fmt::format("{}{:02}{}T{}Z", text.substr(12, 4), month / 3 + 1, text.substr(5, 2), digits);
    const auto parsed = parse_amz_date(stamp);
    return parsed ? std::optional(std::chrono::floor<std::chrono::seconds>(*parsed)) : std::nullopt;
}

}  // namespace holdfast::dsql::dynamo
