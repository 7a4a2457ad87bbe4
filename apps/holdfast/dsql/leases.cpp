#include "dsql/leases.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <vector>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "database.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/dsql/endpoint.hpp>
#include <holdfast/dsql/leases.hpp>
#include <holdfast/dsql/source.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::app {
namespace {

constexpr std::chrono::seconds leases_patience{90};

const std::string& first_of(const std::string& told, const std::string& configured) {
    return told.empty() ? configured : told;
}

// A cluster, and the region of its tables. Each is empty if it is not given.
struct Cluster {
    std::string endpoint;
    std::string region;
};

// Found as by a process that opens a database, so that both use the same tables.
Cluster cluster_of(const Context& context, const DsqlLeasesRequest& request) {
    Cluster cluster{.endpoint = {},
                    .region = dsql::usual_region(context.config.text("dsql.region"))};
    const std::string& named = first_of(request.endpoint, context.config.text("dsql.endpoint"));
    const std::string& url = database_url(context);
    if (!named.empty()) {
        cluster.endpoint = dsql::normal_endpoint(named);
        cluster.region = dsql::region_of(cluster.endpoint).value_or(cluster.region);
    } else if (url.starts_with("dsql:")) {
        const dsql::TokenKey key =
            dsql::parse_target(
                sql::parse_url(url), "holdfast", first_of(request.region, cluster.region))
                .key;
        cluster = {.endpoint = key.host, .region = key.region};
    }
    return {.endpoint = cluster.endpoint, .region = first_of(request.region, cluster.region)};
}

std::string required_endpoint(const Context& context, const DsqlLeasesRequest& request) {
    std::string endpoint = cluster_of(context, request).endpoint;
    if (endpoint.empty()) {
        throw InvalidArgument(
            "no cluster is named; pass --endpoint HOST, or --db dsql://HOST, or set "
            "CLUSTER_ENDPOINT");
    }
    return endpoint;
}

std::string required_leases_table(const Context& context, const DsqlLeasesRequest& request) {
    std::string table = first_of(request.leases_table, context.config.text("dsql.leases.table"));
    if (table.empty()) {
        throw InvalidArgument(
            "no table is named; pass --leases-table NAME or set DSQL_DISTRIBUTED_CONN_LEASE_TABLE");
    }
    return table;
}

std::string required_region(const Context& context, const DsqlLeasesRequest& request) {
    std::string region = cluster_of(context, request).region;
    if (region.empty()) {
        throw InvalidArgument("no region is named; pass --region us-east-1 or set AWS_REGION");
    }
    return region;
}

dsql::LeaseAdminOptions admin_options(const Context& context, const DsqlLeasesRequest& request) {
    const std::string region = required_region(context, request);
    return {.region = region,
            .dynamodb_endpoint = context.config.text("dsql.dynamodb_endpoint"),
            .credentials = std::make_shared<dsql::CredentialChain>(dsql::CredentialOptions{
                .profile = request.profile, .region = region, .logger = &context.logger})};
}

bool counted_one_by_one(const Context& context) {
    return context.config.text("dsql.leases.mode") == "counter";
}

std::int64_t ms(Wall time) {
    return std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
}

std::string ends_in(Wall until) {
    const auto left = std::chrono::floor<std::chrono::seconds>(until - system_clock().wall_now());
    return left.count() >= 0 ? format_duration(left)
                             : fmt::format("{} ago", format_duration(-left));
}

// Leases without an owner belong to processes without a heartbeat.
const char* state_of(const dsql::OwnerSeen& owner) {
    if (owner.owner.empty()) {
        return "unowned";
    }
    return owner.dead ? "dead" : "alive";
}

Json to_json(const dsql::BlockSeen& block) {
    return {{"block", block.block},
            {"state", to_string(block.state)},
            {"slots", block.slots},
            {"owner", block.owner},
            {"service", block.service},
            {"host", block.host},
            {"epoch", block.epoch},
            {"until_ms", ms(block.until)}};
}

int show_owners(const Context& context, const std::string& endpoint, const dsql::LeasesSeen& seen) {
    Json json{{"endpoint", endpoint}, {"counted", seen.counted}, {"owners", Json::array()}};
    Table table{
        {{"state"}, {"leases", Align::right}, {"service"}, {"host"}, {"ends in", Align::right}}};
    for (const dsql::OwnerSeen& owner : seen.owners) {
        json["owners"].push_back({{"owner", owner.owner},
                                  {"state", state_of(owner)},
                                  {"leases", owner.leases},
                                  {"service", owner.service},
                                  {"host", owner.host},
                                  {"until_ms", owner.until ? Json(ms(*owner.until)) : Json()}});
        table.add({state_of(owner),
                   std::to_string(owner.leases),
                   owner.service,
                   owner.host,
                   owner.until ? ends_in(*owner.until) : "never heard"});
    }
    print(context.json ? json.dump() + "\n"
                       : table.text() + fmt::format("counted: {}\n", seen.counted));
    return exit_done;
}

int say_reaped(const Context& context,
               const std::string& endpoint,
               const dsql::LeasesReaped& reaped) {
    Json json{{"endpoint", endpoint},
              {"dead_owners", reaped.dead_owners},
              {"freed", reaped.freed},
              {"drift", reaped.drift ? Json(*reaped.drift) : Json()}};
    context.logger.info("reaper.run",
                        {{"dead_owners", reaped.dead_owners},
                         {"freed", reaped.freed},
                         {"drift", reaped.drift.value_or(0)}});
    return say(context,
               json,
               fmt::format("freed {} leases of {} dead owners; {}",
                           reaped.freed,
                           reaped.dead_owners,
                           reaped.drift ? fmt::format("the counter was off by {}", *reaped.drift)
                                        : "the counter was not changed: the fleet is too busy, or "
                                          "some leases have no owner"));
}

}  // namespace

int dsql_leases_setup(const Context& context, const DsqlLeasesRequest& request) {
    std::vector<std::string> tables;
    for (const std::string& table :
         {first_of(request.leases_table, context.config.text("dsql.leases.table")),
          first_of(request.limiter_table, context.config.text("dsql.limiter.table"))}) {
        if (!table.empty() && std::find(tables.begin(), tables.end(), table) == tables.end()) {
            tables.push_back(table);
        }
    }
    if (tables.empty()) {
        throw InvalidArgument(
            "no table is named; pass --leases-table NAME and --limiter-table NAME, or set "
            "DSQL_DISTRIBUTED_CONN_LEASE_TABLE and DSQL_DISTRIBUTED_RATE_LIMITER_TABLE");
    }
    dsql::LeaseAdmin admin(admin_options(context, request));
    Progress progress(context.quiet);
    Json json{{"tables", Json::array()}};
    std::string sentence;
    for (const std::string& table : tables) {
        progress.show(fmt::format("making {}", table));
        const dsql::TableMade made =
            admin.setup(table, Deadline::after(leases_patience), context.stop);
        json["tables"].push_back({{"table", made.table},
                                  {"created", made.created},
                                  {"expiry_enabled", made.expiry_enabled}});
        sentence += fmt::format("{}{} {}",
                                sentence.empty() ? "" : "; ",
                                table,
                                made.created ? "was made" : "was there");
    }
    progress.clear();
    return say(context, json, sentence);
}

int dsql_leases_show(const Context& context, const DsqlLeasesRequest& request) {
    const std::string endpoint = required_endpoint(context, request);
    dsql::LeaseAdmin admin(admin_options(context, request));
    const std::string leases = required_leases_table(context, request);
    const Deadline deadline = Deadline::after(leases_patience);
    if (counted_one_by_one(context)) {
        return show_owners(
            context, endpoint, admin.show_leases(leases, endpoint, deadline, context.stop));
    }
    const auto blocks = admin.show(leases, endpoint, deadline, context.stop);
    Json json{{"endpoint", endpoint}, {"blocks", Json::array()}};
    Table table{{{"block", Align::right},
                 {"state"},
                 {"slots", Align::right},
                 {"service"},
                 {"host"},
                 {"ends in", Align::right},
                 {"taken", Align::right}}};
    for (const dsql::BlockSeen& block : blocks) {
        json["blocks"].push_back(to_json(block));
        table.add({std::to_string(block.block),
                   to_string(block.state),
                   std::to_string(block.slots),
                   block.service,
                   block.host,
                   block.state == dsql::BlockSeen::State::free ? "" : ends_in(block.until),
                   std::to_string(block.epoch)});
    }
    print(context.json ? json.dump() + "\n" : table.text());
    return exit_done;
}

int dsql_leases_reap(const Context& context, const DsqlLeasesRequest& request) {
    const std::string endpoint = required_endpoint(context, request);
    dsql::LeaseAdmin admin(admin_options(context, request));
    const std::string leases = required_leases_table(context, request);
    const Deadline deadline = Deadline::after(leases_patience);
    if (counted_one_by_one(context)) {
        return say_reaped(
            context, endpoint, admin.reap_leases(leases, endpoint, deadline, context.stop));
    }
    const auto freed = admin.reap(leases, endpoint, deadline, context.stop);
    std::int64_t slots = 0;
    std::set<std::string> owners;
    Json json{{"endpoint", endpoint}, {"freed", Json::array()}};
    for (const dsql::BlockSeen& block : freed) {
        json["freed"].push_back(to_json(block));
        slots += block.slots;
        owners.insert(block.owner);
    }
    context.logger.info("reaper.run", {{"dead_owners", owners.size()}, {"freed", slots}});
    return say(
        context,
        json,
        fmt::format(
            "freed {} slots in {} blocks of {} dead owners", slots, freed.size(), owners.size()));
}

}  // namespace holdfast::app
