// DynamoDB's JSON: requests and answers, without a network.
#pragma once

#include <optional>
#include <string>

#include "fleet/dynamodb.hpp"
#include <nlohmann/json.hpp>

namespace holdfast::dsql::dynamo {

// A field of an answer, which may come from a proxy before the service: empty if it has another
// type.
[[nodiscard]] std::string text_in(const nlohmann::json& answer, const char* field);
[[nodiscard]] nlohmann::json list_in(const nlohmann::json& answer, const char* field);
[[nodiscard]] nlohmann::json object_in(const nlohmann::json& answer, const char* field);

[[nodiscard]] nlohmann::json to_json(const Item& item);
// Attributes of unknown types are left out.
[[nodiscard]] Item from_json(const nlohmann::json& item);
// The item in `field`; empty if there is none.
[[nodiscard]] std::optional<Item> item_in(const nlohmann::json& answer, const char* field);

// As a request of its own: PutItem, UpdateItem or DeleteItem. Requests the current item.
[[nodiscard]] std::string operation_of(const Write& write);
[[nodiscard]] nlohmann::json request_of(const Write& write);
// As part of a transaction.
[[nodiscard]] nlohmann::json part_of_transaction(const Write& write);

// "ConditionalCheckFailedException" out of {"__type": "com.amazonaws...#Conditional..."}.
[[nodiscard]] std::string error_name(const nlohmann::json& answer);
// Whether the same request may succeed a moment later.
[[nodiscard]] bool is_passing(const std::string& error, int status);

// "Mon, 16 Nov 2026 11:45:52 GMT"; empty if it is of another form.
[[nodiscard]] std::optional<std::chrono::sys_seconds> parse_http_date(const std::string& text);

}  // namespace holdfast::dsql::dynamo
