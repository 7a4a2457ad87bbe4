#include "fleet/fleet_store.hpp"

#include <array>

#include "fleet/item_time.hpp"
#include <fmt/core.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/pool/leases.hpp>

namespace holdfast::dsql {
namespace {

using dynamo::Write;
using std::chrono::seconds;

// How long the service keeps an item that is not needed any more.
constexpr seconds second_life{180};
constexpr seconds clock_life{3600};

// Rounded up: an item must not expire before its contents do.
std::int64_t epoch_seconds(Wall time) {
    return std::chrono::ceil<seconds>(time).time_since_epoch().count();
}

// Rounded down: a block ends no later than it was promised to others. Its owner has stopped using
// it long before, by the safety.
std::int64_t block_end(Wall now, const pool::SlotBlocksConfig& config) {
    return std::chrono::floor<seconds>(now + us(config.ttl)).time_since_epoch().count();
}

}  // namespace

void check_place(const std::shared_ptr<DynamoClient>& client,
                 const std::string& table,
                 const std::string& endpoint) {
    const char* const missing = client == nullptr  ? "a client of DynamoDB"
                                : table.empty()    ? "the name of a table in DynamoDB"
                                : endpoint.empty() ? "the cluster's endpoint"
                                                   : nullptr;
    if (missing != nullptr) {
        throw InvalidArgument(fmt::format("a fleet that shares its connections needs {}", missing));
    }
}

// --- Permits ---

pool::PermitAnswer PermitStore::ask(const pool::PermitWrite& write,
                                    Deadline deadline,
                                    const std::stop_token& stop) {
    if (std::holds_alternative<pool::ReadBucket>(write)) {
        const auto item = client_->get(table_, "dsql_connect_bucket#" + endpoint_, deadline, stop);
        if (!item) {
            return pool::BucketFound{};
        }
        return pool::BucketFound{
            {{.tokens_milli = dynamo::number(*item, "tokens_milli").value_or(0),
              .refilled_ms = dynamo::number(*item, "last_refill_ms").value_or(0)}}};
    }
    const Write sent = std::visit(
        [this](const auto& what) -> Write {
            if constexpr (std::is_same_v<std::decay_t<decltype(what)>, pool::ReadBucket>) {
                HOLDFAST_ASSERT(false);
                return {};
            } else {
                return translate(what);
            }
        },
        write);
    const dynamo::Answer answer = client_->write(sent, deadline, stop);
    const auto value =
        answer.item ? dynamo::number(*answer.item, "tat_us") : std::optional<std::int64_t>{};
    if (!answer.applied) {
        return pool::NotWritten{value};
    }
    return pool::Written{value.value_or(0)};
}

std::int64_t PermitStore::expiry(seconds life) const {
    return epoch_seconds(client_->wall_now() + life);
}

Write PermitStore::translate(const pool::CountPermits& what) const {
    return {.table = table_,
            .pk = fmt::format("dsqlconnect#{}#{}", endpoint_, what.second),
            .update = "SET updated_at_ms = :now, ttl_epoch = :ttl ADD #count :n",
            .condition = "attribute_not_exists(#count) OR #count <= :most",
            .names = {{"#count", "count"}},
            .values = {{":now", ms(client_->wall_now())},
                       {":ttl", expiry(second_life)},
                       {":n", what.n},
                       {":most", what.limit - what.n}}};
}

Write PermitStore::translate(const pool::WriteBucket& what) const {
    Write write{.table = table_,
                .pk = "dsql_connect_bucket#" + endpoint_,
                .update =
                    "SET tokens_milli = :tokens, last_refill_ms = :refilled, "
                    "ttl_epoch = :ttl",
                .condition = "attribute_not_exists(pk)",
                .values = {{":tokens", what.next.tokens_milli},
                           {":refilled", what.next.refilled_ms},
                           {":ttl", expiry(clock_life)}}};
    if (what.seen) {
        write.condition = "last_refill_ms = :seen";
        write.values[":seen"] = what.seen->refilled_ms;
    }
    return write;
}

Write PermitStore::translate(const pool::AdvanceClock& what) const {
    return {.table = table_,
            .pk = "dsql_connect_reserve#" + endpoint_,
            .update = "SET tat_us = tat_us + :by, ttl_epoch = :ttl",
            .condition = "tat_us >= :from AND tat_us <= :to",
            .values = {{":by", what.by_us},
                       {":from", what.from_us},
                       {":to", what.to_us},
                       {":ttl", expiry(clock_life)}}};
}

Write PermitStore::translate(const pool::SetClock& what) const {
    return {
        .table = table_,
        .pk = "dsql_connect_reserve#" + endpoint_,
        .update = "SET tat_us = :to, ttl_epoch = :ttl",
        .condition = "attribute_not_exists(tat_us) OR tat_us < :before",
        .values = {{":to", what.to_us}, {":before", what.before_us}, {":ttl", expiry(clock_life)}}};
}

// --- Blocks of slots ---

FleetMember this_process(std::string service) {
    std::array<char, 256> host{};
    const bool known = ::gethostname(host.data(), host.size() - 1) == 0;
    return {.owner = pool::new_lease_id(),
            .service = service.empty() ? "unknown" : std::move(service),
            .host = fmt::format("{}/{}", known ? host.data() : "unknown", ::getpid())};
}

std::string block_prefix(const std::string& endpoint) {
    return fmt::format("connslots#{}#block-", endpoint);
}

std::string block_key(const std::string& endpoint, int block) {
    return block_prefix(endpoint) + std::to_string(block);
}

pool::SlotEvent BlockStore::take(int block, Deadline deadline, const std::stop_token& stop) {
    const Wall now = client_->wall_now();
    const dynamo::Answer answer = client_->write(
        {.table = table_,
         .pk = block_key(endpoint_, block),
         .update = "SET owner_id = :me, ttl_epoch = :ttl, slots = :slots, service_name = :service, "
                   "owner_host = :host, acquired_at_ms = :now, renewed_at_ms = :now "
                   "ADD epoch :one",
         .condition = "attribute_not_exists(pk) OR (slots = :slots AND (owner_id = :none OR "
                      "owner_id = :me OR ttl_epoch < :dead))",
         .values = {{":me", member_.owner},
                    {":none", ""},
                    {":ttl", block_end(now, config_)},
                    {":dead", epoch_seconds(now - us(limits_.steal_after))},
                    {":slots", config_.size},
                    {":service", member_.service},
                    {":host", member_.host},
                    {":now", ms(now)},
                    {":one", 1}}},
        deadline,
        stop);
    const dynamo::Item& item = answer.item ? *answer.item : dynamo::Item{};
    if (answer.applied) {
        return pool::BlockTaken{.block = block, .epoch = dynamo::number(item, "epoch").value_or(0)};
    }
    pool::BlockRefused refused{.block = block};
    if (const auto slots = dynamo::number(item, "slots")) {
        refused.slots = static_cast<int>(*slots);
    }
    if (const auto end = dynamo::number(item, "ttl_epoch"); end && refused.slots == config_.size) {
        // The service compares whole seconds: it is free when the next one has begun.
        refused.free_in =
            Wall{seconds{*end}} + us(limits_.steal_after) - now + std::chrono::milliseconds{1};
    }
    return refused;
}

pool::SlotEvent BlockStore::renew(int block, Deadline deadline, const std::stop_token& stop) {
    const Wall now = client_->wall_now();
    const dynamo::Answer answer = client_->write(
        {.table = table_,
         .pk = block_key(endpoint_, block),
         .update = "SET ttl_epoch = :ttl, renewed_at_ms = :now",
         .condition = "owner_id = :me",
         .values = {{":me", member_.owner}, {":ttl", block_end(now, config_)}, {":now", ms(now)}}},
        deadline,
        stop);
    if (answer.applied) {
        return pool::BlockRenewed{block};
    }
    return pool::BlockRefused{.block = block};
}

void BlockStore::give_back(const pool::GiveBlockBack& back,
                           Deadline deadline,
                           const std::stop_token& stop) {
    dynamo::Write write{
        .table = table_,
        .pk = block_key(endpoint_, back.block),
        .update = "SET owner_id = :none, released_at_ms = :now",
        .condition = "owner_id = :me",
        .values = {{":me", member_.owner}, {":none", ""}, {":now", ms(client_->wall_now())}}};
    if (back.epoch) {
        write.condition += " AND epoch = :epoch";
        write.values[":epoch"] = *back.epoch;
    }
    (void)client_->write(write, deadline, stop);
}

}  // namespace holdfast::dsql
