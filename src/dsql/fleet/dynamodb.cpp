#include "fleet/dynamodb.hpp"

#include <algorithm>
#include <utility>

#include "auth/sigv4.hpp"
#include "fleet/dynamodb_json.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>

namespace holdfast::dsql {
namespace {

using dynamo::Item;
using nlohmann::json;

constexpr const char* service = "dynamodb";
constexpr const char* api = "DynamoDB_20120810.";
// Requests for tables are answered slowly, and are not urgent.
constexpr std::chrono::seconds table_timeout{5};

std::string endpoint_of(const DynamoOptions& options) {
    if (!options.endpoint.empty()) {
        return options.endpoint;
    }
    const bool china = options.region.starts_with("cn-");
    return fmt::format("https://dynamodb.{}.amazonaws.com{}", options.region, china ? ".cn" : "");
}

DynamoOptions checked(DynamoOptions options) {
    if (options.region.empty()) {
        throw InvalidArgument("DynamoDB needs a region; set AWS_REGION");
    }
    if (!options.credentials) {
        throw InvalidArgument("DynamoDB needs AWS credentials, and there is no source of them");
    }
    return options;
}

}  // namespace

struct DynamoClient::Reply {
    int status = 0;
    std::string error;  // Empty: done.
    json body;

    [[nodiscard]] bool done() const noexcept { return error.empty(); }
};

namespace {

// Errors that are neither an answer nor temporary.
template <class Reply>
[[noreturn]] void fail(const std::string& operation, const Reply& reply) {
    const std::string said =
        dynamo::text_in(reply.body, "message") + dynamo::text_in(reply.body, "Message");
    const std::string message = fmt::format(
        "DynamoDB's {} answered {}{}{}", operation, reply.error, said.empty() ? "" : ": ", said);
    if (reply.error == "ResourceNotFoundException") {
        throw Error(Code::not_found,
                    Outcome::not_applied,
                    message + "; make the table with `holdfast dsql leases setup`");
    }
    if (dynamo::is_passing(reply.error, reply.status)) {
        const bool broken = reply.status >= 500;
        throw Error(broken ? Code::unavailable : Code::conflict,
                    broken ? Outcome::unknown : Outcome::not_applied,
                    message);
    }
    for (const char* denied : {"AccessDeniedException",
                               "UnrecognizedClientException",
                               "InvalidSignatureException",
                               "ExpiredTokenException",
                               "MissingAuthenticationTokenException"}) {
        if (reply.error == denied) {
            throw Error(Code::unauthorized, Outcome::not_applied, message);
        }
    }
    throw Error(Code::internal, Outcome::not_applied, message);
}

}  // namespace

DynamoClient::DynamoClient(DynamoOptions options)
    : options_(checked(std::move(options))),
      clock_(options_.clock == nullptr ? system_clock() : *options_.clock),
      connections_(endpoint_of(options_), options_.ca_file) {}

// --- Items ---

std::optional<Item> DynamoClient::get(const std::string& table,
                                      const std::string& pk,
                                      Deadline deadline,
                                      const std::stop_token& stop) {
    const json request{
        {"TableName", table}, {"Key", dynamo::to_json({{"pk", pk}})}, {"ConsistentRead", true}};
    const Reply reply = call("GetItem", request.dump(), deadline, stop);
    if (!reply.done()) {
        fail("GetItem", reply);
    }
    return dynamo::item_in(reply.body, "Item");
}

dynamo::Answer DynamoClient::write(const dynamo::Write& write,
                                   Deadline deadline,
                                   const std::stop_token& stop) {
    const std::string operation = dynamo::operation_of(write);
    const Reply reply = call(operation, dynamo::request_of(write).dump(), deadline, stop);
    if (reply.done()) {
        return {.applied = true, .item = dynamo::item_in(reply.body, "Attributes")};
    }
    if (reply.error != "ConditionalCheckFailedException") {
        fail(operation, reply);
    }
    return {.applied = false, .item = dynamo::item_in(reply.body, "Item")};
}

dynamo::TransactAnswer DynamoClient::transact(const std::vector<dynamo::Write>& writes,
                                              const std::string& token,
                                              Deadline deadline,
                                              const std::stop_token& stop) {
    json request{{"TransactItems", json::array()}, {"ClientRequestToken", token}};
    for (const dynamo::Write& write : writes) {
        request["TransactItems"].push_back(dynamo::part_of_transaction(write));
    }
    const Reply reply = call("TransactWriteItems", request.dump(), deadline, stop);
    if (reply.done()) {
        return {.applied = true};
    }
    if (reply.error != "TransactionCanceledException") {
        fail("TransactWriteItems", reply);
    }
    dynamo::TransactAnswer answer;
    for (const json& reason : dynamo::list_in(reply.body, "CancellationReasons")) {
        const std::string code = dynamo::text_in(reason, "Code");
        answer.reasons.push_back(
            {.code = code.empty() ? "None" : code, .item = dynamo::item_in(reason, "Item")});
    }
    return answer;
}

dynamo::Page DynamoClient::scan(const std::string& table,
                                const std::string& prefix,
                                const std::string& from,
                                int limit,
                                Deadline deadline,
                                const std::stop_token& stop) {
    json request{{"TableName", table},
                 {"FilterExpression", "begins_with(pk, :prefix)"},
                 {"ExpressionAttributeValues", dynamo::to_json({{":prefix", prefix}})},
                 {"ConsistentRead", true},
                 {"Limit", limit}};
    if (!from.empty()) {
        request["ExclusiveStartKey"] = dynamo::to_json({{"pk", from}});
    }
    const Reply reply = call("Scan", request.dump(), deadline, stop);
    if (!reply.done()) {
        fail("Scan", reply);
    }
    dynamo::Page page;
    for (const json& item : dynamo::list_in(reply.body, "Items")) {
        page.items.push_back(dynamo::from_json(item));
    }
    if (const auto last = dynamo::item_in(reply.body, "LastEvaluatedKey")) {
        page.next = dynamo::text(*last, "pk").value_or("");
    }
    return page;
}

// --- Tables ---

bool DynamoClient::create_table(const std::string& table,
                                Deadline deadline,
                                const std::stop_token& stop) {
    const json request{
        {"TableName", table},
        {"AttributeDefinitions", {{{"AttributeName", "pk"}, {"AttributeType", "S"}}}},
        {"KeySchema", {{{"AttributeName", "pk"}, {"KeyType", "HASH"}}}},
        {"BillingMode", "PAY_PER_REQUEST"},
        {"Tags",
         {{{"Key", "Name"}, {"Value", table}}, {{"Key", "ManagedBy"}, {"Value", "holdfast"}}}}};
    const Reply reply = call("CreateTable", request.dump(), deadline, stop);
    if (!reply.done() && reply.error != "ResourceInUseException") {
        fail("CreateTable", reply);
    }
    return reply.done();
}

dynamo::TableState DynamoClient::describe_table(const std::string& table,
                                                Deadline deadline,
                                                const std::stop_token& stop) {
    const Reply reply = call("DescribeTable", json{{"TableName", table}}.dump(), deadline, stop);
    if (reply.error == "ResourceNotFoundException") {
        return dynamo::TableState::absent;
    }
    if (!reply.done()) {
        fail("DescribeTable", reply);
    }
    const std::string status =
        dynamo::text_in(dynamo::object_in(reply.body, "Table"), "TableStatus");
    return status == "ACTIVE" ? dynamo::TableState::active : dynamo::TableState::changing;
}

dynamo::ExpiryState DynamoClient::describe_expiry(const std::string& table,
                                                  Deadline deadline,
                                                  const std::stop_token& stop) {
    const Reply reply =
        call("DescribeTimeToLive", json{{"TableName", table}}.dump(), deadline, stop);
    if (!reply.done()) {
        fail("DescribeTimeToLive", reply);
    }
    const std::string status =
        dynamo::text_in(dynamo::object_in(reply.body, "TimeToLiveDescription"), "TimeToLiveStatus");
    if (status == "ENABLED") {
        return dynamo::ExpiryState::on;
    }
    const bool off = status.empty() || status == "DISABLED";
    return off ? dynamo::ExpiryState::off : dynamo::ExpiryState::changing;
}

void DynamoClient::enable_expiry(const std::string& table,
                                 const std::string& attribute,
                                 Deadline deadline,
                                 const std::stop_token& stop) {
    const json request{
        {"TableName", table},
        {"TimeToLiveSpecification", {{"Enabled", true}, {"AttributeName", attribute}}}};
    const Reply reply = call("UpdateTimeToLive", request.dump(), deadline, stop);
    if (!reply.done()) {
        fail("UpdateTimeToLive", reply);
    }
}

// --- Calls ---

DynamoClient::Reply DynamoClient::call(const std::string& operation,
                                       const std::string& body,
                                       Deadline deadline,
                                       const std::stop_token& stop) {
    std::chrono::nanoseconds pause = options_.retry_pause;
    for (int left = options_.retries_max;; --left, pause *= 2) {
        std::optional<Reply> reply;
        try {
            reply = call_once(operation, body, deadline, stop);
            const bool again =
                !reply->done() && dynamo::is_passing(reply->error, reply->status) && left > 0;
            if (!again) {
                return *reply;
            }
        } catch (const Error& error) {
            if (error.code() != Code::unavailable || left <= 0) {
                throw;
            }
        }
        // Full jitter: requests that were refused together do not come back together.
        const auto nap = std::chrono::nanoseconds{
            static_cast<std::int64_t>(static_cast<double>(pause.count()) * thread_random().unit())};
        const Steady until = clock_.steady_now() + nap;
        if (until >= deadline.when() && reply) {
            return *reply;
        }
        if (until >= deadline.when()) {
            throw Error(Code::unavailable,
                        Outcome::unknown,
                        fmt::format("DynamoDB's {} got no answer in time", operation));
        }
        if (!clock_.sleep_until(until, stop)) {
            throw Error(Code::cancelled, Outcome::unknown, "the request was stopped");
        }
    }
}

DynamoClient::Reply DynamoClient::call_once(const std::string& operation,
                                            const std::string& body,
                                            Deadline deadline,
                                            const std::stop_token& stop) {
    const bool table = operation.find("Table") != std::string::npos ||
                       operation.find("TimeToLive") != std::string::npos || operation == "Scan";
    const std::chrono::nanoseconds timeout =
        table ? std::max<std::chrono::nanoseconds>(table_timeout, options_.call_timeout)
              : options_.call_timeout;
    const Deadline end = deadline.earlier(Deadline::after(timeout));
    const Credentials credentials = options_.credentials->get(end, stop);
    const Wall sent = clock_.wall_now();
    const std::string date = amz_date(sent - ahead());

    SignableHeaders headers{{"Host", connections_.host()},
                            {"Content-Type", "application/x-amz-json-1.0"},
                            {"X-Amz-Target", api + operation},
                            {"X-Amz-Date", date}};
    if (!credentials.session_token.empty()) {
        headers.emplace_back("X-Amz-Security-Token", credentials.session_token);
    }
    const Scope scope{.day = date.substr(0, 8), .region = options_.region, .service = service};
    const CanonicalRequest request = canonical_request("POST", "/", "", headers, hex(sha256(body)));
    headers.emplace_back(
        "Authorization",
        fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                    credentials.access_key_id,
                    scope.text(),
                    request.signed_headers,
                    signature(credentials.secret_access_key, date, scope, request.text)));

    const HttpReply answer = connections_.send(
        {.method = "POST", .url = "/", .headers = std::move(headers), .body = body}, end, stop);
    note_date(sent, answer.date);
    Reply reply{
        .status = answer.status, .error = {}, .body = json::parse(answer.body, nullptr, false)};
    if (answer.status == 200 && reply.body.is_object()) {
        return reply;
    }
    if (answer.status == 200) {
        throw Error(Code::unavailable,
                    Outcome::unknown,
                    fmt::format("DynamoDB's {} got an answer that is not valid; check that the "
                                "endpoint is DynamoDB's",
                                operation));
    }
    reply.error = dynamo::error_name(reply.body);
    if (reply.error.empty()) {
        reply.error = fmt::format("status {}", answer.status);
    }
    if (reply.error == "ExpiredTokenException" || reply.error == "UnrecognizedClientException") {
        options_.credentials->forget();
    }
    return reply;
}

// --- The service's clock ---

void DynamoClient::note_date(Wall sent, const std::string& date) {
    if (const auto parsed = dynamo::parse_http_date(date)) {
        const std::lock_guard lock(mutex_);
        skew_.observe(sent, clock_.wall_now(), *parsed);
    }
}

std::chrono::microseconds DynamoClient::ahead() const {
    const std::lock_guard lock(mutex_);
    return skew_.ahead();
}

Wall DynamoClient::wall_now() const {
    return clock_.wall_now() - ahead();
}

}  // namespace holdfast::dsql
