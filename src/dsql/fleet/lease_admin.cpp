#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "fleet/dynamodb.hpp"
#include "fleet/fleet_store.hpp"
#include "fleet/lease_store.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/dsql/leases.hpp>

namespace holdfast::dsql {
namespace {

using std::chrono::seconds;

constexpr const char* expiry_attribute = "ttl_epoch";
constexpr int admin_page_items = 1000;

// The zero time means that no heartbeat was written.
std::optional<Wall> heard(Wall until) {
    return until == Wall{} ? std::nullopt : std::optional(until);
}

BlockSeen seen(const dynamo::Item& item, int block, Wall dead_before) {
    BlockSeen found{.block = block,
                    .owner = dynamo::text(item, "owner_id").value_or(""),
                    .service = dynamo::text(item, "service_name").value_or(""),
                    .host = dynamo::text(item, "owner_host").value_or(""),
                    .slots = dynamo::number(item, "slots").value_or(0),
                    .epoch = dynamo::number(item, "epoch").value_or(0),
                    .until = Wall{seconds{dynamo::number(item, expiry_attribute).value_or(0)}}};
    if (!found.owner.empty()) {
        found.state = found.until < dead_before ? BlockSeen::State::dead : BlockSeen::State::held;
    }
    return found;
}

}  // namespace

const char* to_string(BlockSeen::State state) noexcept {
    switch (state) {
        case BlockSeen::State::held:
            return "held";
        case BlockSeen::State::free:
            return "free";
        case BlockSeen::State::dead:
            return "dead";
    }
    return "free";
}

LeaseAdmin::LeaseAdmin(const LeaseAdminOptions& options)
    : options_(options),
      client_(
          std::make_shared<DynamoClient>(DynamoOptions{.region = options.region,
                                                       .endpoint = options.dynamodb_endpoint,
                                                       .credentials = options.credentials,
                                                       .call_timeout = std::chrono::seconds{5}})) {}

LeaseAdmin::~LeaseAdmin() = default;

TableMade LeaseAdmin::setup(const std::string& table,
                            Deadline deadline,
                            const std::stop_token& stop) {
    TableMade made{.table = table};
    dynamo::TableState state = client_->describe_table(table, deadline, stop);
    if (state == dynamo::TableState::absent) {
        made.created = client_->create_table(table, deadline, stop);
        state = client_->describe_table(table, deadline, stop);
    }
    while (state != dynamo::TableState::active) {
        sleep(deadline, stop);
        state = client_->describe_table(table, deadline, stop);
    }
    made.expiry_enabled = enable_expiry(table, deadline, stop);
    return made;
}

void LeaseAdmin::expect(const std::string& table, Deadline deadline, const std::stop_token& stop) {
    const dynamo::TableState state = client_->describe_table(table, deadline, stop);
    if (state == dynamo::TableState::absent) {
        throw Error(Code::not_found,
                    Outcome::not_applied,
                    fmt::format("DynamoDB has no table {} in {}; make it with `holdfast dsql "
                                "leases setup`",
                                table,
                                options_.region));
    }
    if (state == dynamo::TableState::changing) {
        throw Error(
            Code::unavailable,
            Outcome::not_applied,
            fmt::format("DynamoDB is still making the table {}; try again in a minute", table));
    }
}

// False if it was enabled already. A new table is not known everywhere yet.
bool LeaseAdmin::enable_expiry(const std::string& table,
                               Deadline deadline,
                               const std::stop_token& stop) {
    for (;;) {
        try {
            // To enable it twice is an error.
            if (client_->describe_expiry(table, deadline, stop) != dynamo::ExpiryState::off) {
                return false;
            }
            client_->enable_expiry(table, expiry_attribute, deadline, stop);
            return true;
        } catch (const Error& error) {
            if (error.code() != Code::not_found || deadline.passed()) {
                throw;
            }
        }
        sleep(deadline, stop);
    }
}

void LeaseAdmin::sleep(Deadline deadline, const std::stop_token& stop) const {
    if (deadline.passed()) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    "DynamoDB is still making the table; try again in a minute");
    }
    const Steady until = system_clock().steady_now() + options_.poll_every;
    if (!system_clock().sleep_until(std::min(until, deadline.when()), stop)) {
        throw Error(Code::cancelled, Outcome::not_applied, "setting up was stopped");
    }
}

std::vector<BlockSeen> LeaseAdmin::show(const std::string& table,
                                        const std::string& endpoint,
                                        Deadline deadline,
                                        const std::stop_token& stop) {
    const std::string prefix = block_prefix(endpoint);
    const Wall dead_before = client_->wall_now() - std::chrono::ceil<std::chrono::microseconds>(
                                                       options_.limits.steal_after);
    std::vector<BlockSeen> blocks;
    std::string from;
    do {
        const dynamo::Page page =
            client_->scan(table, prefix, from, admin_page_items, deadline, stop);
        for (const dynamo::Item& item : page.items) {
            const std::string key = dynamo::text(item, "pk").value_or("").substr(prefix.size());
            int block = 0;
            const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), block);
            if (fault == std::errc{} && end == key.data() + key.size()) {
                blocks.push_back(seen(item, block, dead_before));
            }
        }
        from = page.next;
    } while (!from.empty() && blocks.size() < blocks_max);
    std::sort(blocks.begin(), blocks.end(), [](const BlockSeen& a, const BlockSeen& b) {
        return a.block < b.block;
    });
    return blocks;
}

std::vector<BlockSeen> LeaseAdmin::reap(const std::string& table,
                                        const std::string& endpoint,
                                        Deadline deadline,
                                        const std::stop_token& stop) {
    std::vector<BlockSeen> freed;
    for (BlockSeen& block : show(table, endpoint, deadline, stop)) {
        if (block.state != BlockSeen::State::dead) {
            continue;
        }
        const std::int64_t until =
            std::chrono::floor<seconds>(block.until).time_since_epoch().count();
        const std::int64_t now = std::chrono::floor<std::chrono::milliseconds>(client_->wall_now())
                                     .time_since_epoch()
                                     .count();
        const bool applied = client_
                                 ->write({.table = table,
                                          .pk = block_key(endpoint, block.block),
                                          .update = "SET owner_id = :none, released_at_ms = :now",
                                          .condition = "owner_id = :owner AND ttl_epoch = :until",
                                          .values = {{":none", ""},
                                                     {":now", now},
                                                     {":owner", block.owner},
                                                     {":until", until}}},
                                         deadline,
                                         stop)
                                 .applied;
        if (applied) {  // Else its owner has renewed it, or another has taken it.
            freed.push_back(std::move(block));
        }
    }
    return freed;
}

// --- Leases of single connections ---

LeasesSeen LeaseAdmin::show_leases(const std::string& table,
                                   const std::string& endpoint,
                                   Deadline deadline,
                                   const std::stop_token& stop) {
    LeaseStore store(client_, table, endpoint, this_process("admin"), options_.limits);
    const auto count = store.count(deadline, stop);
    const LeasesFound found = store.find(deadline, stop);
    const Wall dead_before = client_->wall_now() - std::chrono::ceil<std::chrono::microseconds>(
                                                       options_.limits.steal_after);
    std::map<std::string, OwnerSeen> owners;
    for (const OwnerItem& owner : found.owners) {
        owners[owner.seen.owner] = {.owner = owner.seen.owner,
                                    .service = owner.service,
                                    .host = owner.host,
                                    .until = heard(owner.seen.alive_until),
                                    .dead = owner.seen.alive_until < dead_before};
    }
    for (const pool::LeaseSeen& lease : found.leases) {
        const auto [owner, unknown] = owners.try_emplace(
            lease.owner, OwnerSeen{.owner = lease.owner, .dead = !lease.owner.empty()});
        ++owner->second.leases;
    }
    LeasesSeen seen{.counted = count ? count->active : 0};
    for (auto& [id, owner] : owners) {
        seen.owners.push_back(std::move(owner));
    }
    std::sort(seen.owners.begin(), seen.owners.end(), [](const auto& a, const auto& b) {
        return std::tie(a.service, a.owner) < std::tie(b.service, b.owner);
    });
    return seen;
}

LeasesReaped LeaseAdmin::reap_leases(const std::string& table,
                                     const std::string& endpoint,
                                     Deadline deadline,
                                     const std::stop_token& stop) {
    LeaseStore store(client_, table, endpoint, this_process("admin"), options_.limits);
    const ReapReport done = dsql::reap_leases(store, options_.limits, true, deadline, stop);
    return {.dead_owners = done.dead_owners, .freed = done.freed, .drift = done.drift};
}

}  // namespace holdfast::dsql
