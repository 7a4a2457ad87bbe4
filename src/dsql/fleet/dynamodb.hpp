// Amazon DynamoDB, as far as limiters and leases need it.
//
// Tables with one string key, `pk`. Values are strings and whole numbers. A condition that does not
// hold is an answer; every other failure is an Error. A throttled request is retried a few times,
// with jitter in the pauses.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/http_client.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/pool/permits.hpp>

namespace holdfast::dsql {

namespace dynamo {

using Value = std::variant<std::string, std::int64_t>;
using Item = std::map<std::string, Value>;

// Empty if there is no such attribute, or it is of the other kind.
[[nodiscard]] std::optional<std::int64_t> number(const Item& item, const std::string& name);
[[nodiscard]] std::optional<std::string> text(const Item& item, const std::string& name);

// One conditional write: puts an item, updates some of its attributes, or deletes it.
struct Write {
    enum class Kind { put, update, erase };
    Kind kind = Kind::update;
    std::string table{};
    std::string pk{};
    Item item{};                                 // To put, without `pk`.
    std::string update{};                        // To update: "SET a = :a ADD #b :b".
    std::string condition{};                     // Empty: none.
    std::map<std::string, std::string> names{};  // "#b": for reserved words of the service.
    Item values{};                               // ":a"
};

struct Answer {
    bool applied = false;
    // The current item; for an update, and for any write that was not applied. Empty if there is no
    // such item.
    std::optional<Item> item{};
};

// Why one write of a transaction kept it from being applied: "ConditionalCheckFailed",
// "TransactionConflict", "ThrottlingError", ...; "None" for the others.
struct Cancellation {
    std::string code;
    std::optional<Item> item{};
};

struct TransactAnswer {
    bool applied = false;
    std::vector<Cancellation> reasons{};  // One for each write, if it was not applied.
};

struct Page {
    std::vector<Item> items;
    std::string next;  // Where the next page begins; empty: this was the last one.
};

enum class TableState { absent, changing, active };
enum class ExpiryState { off, changing, on };

}  // namespace dynamo

struct DynamoOptions {
    std::string region{};
    std::string endpoint{};  // Empty: the region's, over https.
    std::string ca_file{};
    std::shared_ptr<CredentialProvider> credentials{};
    const Clock* clock = nullptr;

    std::chrono::milliseconds call_timeout{1000};  // One try.
    int retries_max = 2;
    std::chrono::milliseconds retry_pause{50};  // Before the first retry, at most; it doubles.
};

// Safe to share between threads. Calls block until the deadline at most, and throw Error:
// unavailable if the service cannot be reached or is broken (its outcome says whether the write can
// be applied), conflict if it throttles the request or another one interferes, not_found without
// the table, unauthorized, cancelled, internal for a request that the service does not understand.
// A write may be sent again after a lost answer, so the caller's conditions must allow that.
class DynamoClient {
public:
    // Requires: a region, and credentials. Else invalid_argument.
    explicit DynamoClient(DynamoOptions options);

    [[nodiscard]] std::optional<dynamo::Item> get(const std::string& table,
                                                  const std::string& pk,
                                                  Deadline deadline,
                                                  const std::stop_token& stop);
    [[nodiscard]] dynamo::Answer write(const dynamo::Write& write,
                                       Deadline deadline,
                                       const std::stop_token& stop);
    // All or none. A repeat with the same token is the same transaction, for ten minutes.
    [[nodiscard]] dynamo::TransactAnswer transact(const std::vector<dynamo::Write>& writes,
                                                  const std::string& token,
                                                  Deadline deadline,
                                                  const std::stop_token& stop);
    // The items whose key begins with `prefix`, among at most `limit` that are examined.
    [[nodiscard]] dynamo::Page scan(const std::string& table,
                                    const std::string& prefix,
                                    const std::string& from,
                                    int limit,
                                    Deadline deadline,
                                    const std::stop_token& stop);

    // False if it exists already.
    [[nodiscard]] bool create_table(const std::string& table,
                                    Deadline deadline,
                                    const std::stop_token& stop);
    [[nodiscard]] dynamo::TableState describe_table(const std::string& table,
                                                    Deadline deadline,
                                                    const std::stop_token& stop);
    [[nodiscard]] dynamo::ExpiryState describe_expiry(const std::string& table,
                                                      Deadline deadline,
                                                      const std::stop_token& stop);
    void enable_expiry(const std::string& table,
                       const std::string& attribute,
                       Deadline deadline,
                       const std::stop_token& stop);

    // The local wall clock, corrected by the Date of the service's answers.
    [[nodiscard]] Wall wall_now() const;
    [[nodiscard]] std::chrono::microseconds ahead() const;

private:
    struct Reply;

    [[nodiscard]] Reply call(const std::string& operation,
                             const std::string& body,
                             Deadline deadline,
                             const std::stop_token& stop);
    [[nodiscard]] Reply call_once(const std::string& operation,
                                  const std::string& body,
                                  Deadline deadline,
                                  const std::stop_token& stop);
    void note_date(Wall sent, const std::string& date);

    const DynamoOptions options_;
    const Clock& clock_;
    HttpConnections connections_;
    mutable std::mutex mutex_;
    pool::ClockSkew skew_;
};

}  // namespace holdfast::dsql
