#include "fleet/fleet_part.hpp"

#include <algorithm>
#include <utility>

#include <holdfast/base/error.hpp>
#include <holdfast/pool/pool.hpp>

namespace holdfast::dsql {
namespace {

// A block of slots, or a lease, takes one round trip, if there is a free one.
constexpr std::chrono::seconds slot_patience{5};

LimiterOptions limiter_options(const FleetConfig& config,
                               std::shared_ptr<PermitStore> store,
                               Metrics* metrics,
                               Logger* logger) {
    return {.local_per_second = static_cast<double>(config.rate),
            .local_burst = config.burst,
            .store = std::move(store),
            .fleet = config.permits,
            .fleet_size = config.fleet_size,
            .limits = config.limits,
            .metrics = metrics,
            .logger = logger};
}

std::shared_ptr<PermitStore> permit_store(const FleetConfig& config,
                                          const std::shared_ptr<DynamoClient>& client,
                                          const std::string& endpoint) {
    return config.rate_table.empty()
               ? nullptr
               : std::make_shared<PermitStore>(client, config.rate_table, endpoint);
}

std::shared_ptr<DynamoClient> client_if_needed(const FleetConfig& config,
                                               const std::string& region,
                                               std::shared_ptr<CredentialProvider> credentials) {
    return config.rate_table.empty() && config.lease_table.empty()
               ? nullptr
               : fleet_client(config, region, std::move(credentials));
}

// A fleet with a shared limiter does not need to spread its starts.
Steady begin_of(const FleetConfig& config, Logger* logger) {
    const auto now = system_clock().steady_now();
    if (!config.rate_table.empty() || config.stagger_max == std::chrono::nanoseconds{0}) {
        return now;
    }
    const auto delay = startup_delay(config, thread_random());
    if (logger != nullptr) {
        logger->info("startup.stagger",
                     {{"delay_seconds", std::chrono::duration<double>(delay).count()}});
    }
    return now + delay;
}

}  // namespace

std::shared_ptr<DynamoClient> fleet_client(const FleetConfig& config,
                                           const std::string& region,
                                           std::shared_ptr<CredentialProvider> credentials) {
    return std::make_shared<DynamoClient>(DynamoOptions{.region = region,
                                                        .endpoint = config.dynamodb_endpoint,
                                                        .credentials = std::move(credentials)});
}

FleetPart::FleetPart(const FleetConfig& config,
                     const std::string& endpoint,
                     const std::string& region,
                     std::shared_ptr<CredentialProvider> credentials,
                     Metrics* metrics,
                     Logger* logger)
    : begin_(begin_of(config, logger)), limiter_([&] {
          const auto client = client_if_needed(config, region, std::move(credentials));
          if (!config.lease_table.empty()) {
              share_connections(config, client, endpoint, metrics, logger);
          }
          return limiter_options(config, permit_store(config, client, endpoint), metrics, logger);
      }()) {}

void FleetPart::share_connections(const FleetConfig& config,
                                  const std::shared_ptr<DynamoClient>& client,
                                  const std::string& endpoint,
                                  Metrics* metrics,
                                  Logger* logger) {
    FleetMember member = this_process(service_name(config));
    if (config.lease_mode == LeaseMode::counter) {
        leases_.emplace(LeaseKeeperOptions{.client = client,
                                           .table = config.lease_table,
                                           .endpoint = endpoint,
                                           .member = std::move(member),
                                           .leases = config.leases,
                                           .limits = config.limits,
                                           .metrics = metrics,
                                           .logger = logger});
        return;
    }
    slots_.emplace(SlotKeeperOptions{.client = client,
                                     .table = config.lease_table,
                                     .endpoint = endpoint,
                                     .member = std::move(member),
                                     .blocks = config.blocks,
                                     .limits = config.limits,
                                     .metrics = metrics,
                                     .logger = logger});
}

Right FleetPart::admit(Deadline deadline, const std::stop_token& stop, pool::OpenPhases& phases) {
    if (!system_clock().sleep_until(std::min(begin_, deadline.when()), stop)) {
        throw Error(
            Code::cancelled, Outcome::not_applied, "waiting for the start delay was cancelled");
    }
    if (delay() > std::chrono::nanoseconds{0}) {
        throw pool::OpenError(
            pool::FailureClass::rate_limited,
            Code::unavailable,
            "the start delay of this process is not over; lower dsql.stagger_max");
    }
    Right right;
    if (slots_ || leases_) {
        phases.enter(pool::OpenPhase::slot);
    }
    const Deadline soon = deadline.earlier(Deadline::after(slot_patience));
    if (slots_) {
        right = slots_->acquire(soon, stop);
    } else if (leases_) {
        right = leases_->acquire(soon, stop);
    }
    try {
        phases.enter(pool::OpenPhase::permit);
        limiter_.acquire(deadline, stop);
    } catch (...) {
        gone(right);
        throw;
    }
    return right;
}

std::chrono::nanoseconds FleetPart::delay() const {
    return std::max<std::chrono::nanoseconds>(begin_ - system_clock().steady_now(),
                                              std::chrono::nanoseconds{0});
}

void FleetPart::gone(const Right& right) {
    if (const auto* slot = std::get_if<pool::SlotId>(&right)) {
        slots_->release(*slot);
    } else if (const auto* lease = std::get_if<pool::LeaseId>(&right)) {
        leases_->release(*lease);
    }
}

void FleetPart::full() {
    if (leases_) {
        leases_->doubt_count();
    }
}

std::optional<ShedRegistry::Id> FleetPart::join(int target, ShedRegistry::Shed shed) {
    if (slots_) {
        return slots_->join(target, std::move(shed));
    }
    return leases_ ? std::optional(leases_->join(target, std::move(shed))) : std::nullopt;
}

void FleetPart::leave(ShedRegistry::Id holder) {
    if (slots_) {
        slots_->leave(holder);
    } else {
        leases_->leave(holder);
    }
}

}  // namespace holdfast::dsql
