#include "database.hpp"

#include <algorithm>
#include <limits>

#include <holdfast/base/error.hpp>

namespace holdfast::app {
namespace {

std::chrono::milliseconds configured_ms(const Config& config, const std::string& key) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(config.duration(key));
}

// Overlays what is set below `prefix` ("retry") on a policy.
sql::RetryPolicy retry_policy(const Config& config,
                              const std::string& prefix,
                              sql::RetryPolicy policy) {
    if (config.has(prefix + ".max_retries")) {
        policy.max_retries = static_cast<int>(config.integer(prefix + ".max_retries"));
    }
    if (config.has(prefix + ".base_delay")) {
        policy.base_delay = configured_ms(config, prefix + ".base_delay");
    }
    if (config.has(prefix + ".max_delay")) {
        policy.max_delay = configured_ms(config, prefix + ".max_delay");
    }
    if (config.has(prefix + ".jitter_factor")) {
        policy.jitter_factor = config.number(prefix + ".jitter_factor");
    }
    return policy;
}

}  // namespace

const std::string& database_url(const Context& context) {
    return context.config.text("db");
}

const std::string& required_database_url(const Context& context) {
    const std::string& url = database_url(context);
    if (url.empty()) {
        throw InvalidArgument(
            "no database is named; pass --db sqlite:FILE, --db postgres://USER@HOST/NAME or --db "
            "dsql://ENDPOINT, or set HOLDFAST_DB");
    }
    return url;
}

sql::DatabaseOptions database_options(const Context& context, Stay stay) {
    const Config& config = context.config;
    const std::int64_t alert = config.integer("monitoring.alert_threshold_conflicts_per_minute");
    sql::DatabaseOptions options;
    options.retry = retry_policy(config, "retry", {});
    for (const std::string& operation : config.names("retry.operations")) {
        options.retry_by_operation[operation] =
            retry_policy(config, "retry.operations." + operation, options.retry);
    }
    options.track_retry_counts = config.boolean("monitoring.track_retry_counts");
    options.alert_conflicts_per_minute =
        static_cast<int>(std::min<std::int64_t>(alert, std::numeric_limits<int>::max()));
    options.metrics = &context.metrics;
    options.logger = &context.logger;
    if (context.add_sources != nullptr) {
        context.add_sources(context, stay, options);
    }
    return options;
}

}  // namespace holdfast::app
