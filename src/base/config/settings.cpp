#include <holdfast/base/settings.hpp>

#include <array>
#include <string_view>
#include <utility>

namespace holdfast {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::array<std::pair<std::string_view, Level>, 5> levels{{{"debug", Level::debug},
                                                                    {"info", Level::info},
                                                                    {"warn", Level::warn},
                                                                    {"error", Level::error},
                                                                    {"off", Level::off}}};

Settings retry_settings() {
    return {
        {.key = "retry.max_retries",
         .kind = IntegerKind{0, 1000},
         .fallback = "5",
         .description = "the number of retries after a conflict",
         .environment = "HOLDFAST_RETRY_MAX_RETRIES"},
        {.key = "retry.base_delay",
         .kind = DurationKind{milliseconds{0}, hours{1}},
         .fallback = "100ms",
         .description = "the backoff before the first retry; it doubles with each one",
         .environment = "HOLDFAST_RETRY_BASE_DELAY"},
        {.key = "retry.max_delay",
         .kind = DurationKind{milliseconds{0}, hours{1}},
         .fallback = "5s",
         .description = "the longest backoff between retries",
         .environment = "HOLDFAST_RETRY_MAX_DELAY"},
        {.key = "retry.jitter_factor",
         .kind = NumberKind{0, 1},
         .fallback = "0.25",
         .description = "the random part of a backoff, as a fraction",
         .environment = "HOLDFAST_RETRY_JITTER_FACTOR"},
    };
}

// The same settings once more, for the user's choice of operations.
Settings per_operation(const Settings& retry) {
    constexpr std::string_view group = "retry.";
    Settings overrides;
    for (const Setting& setting : retry) {
        overrides.push_back({.key = "retry.operations.*." + setting.key.substr(group.size()),
                             .kind = setting.kind,
                             .description = setting.description + ", for one operation"});
    }
    return overrides;
}

Settings monitoring_settings() {
    return {
        {.key = "monitoring.track_retry_counts",
         .kind = BoolKind{},
         .fallback = "true",
         .description = "count retries by operation",
         .environment = "HOLDFAST_MONITORING_TRACK_RETRY_COUNTS"},
        {.key = "monitoring.alert_threshold_conflicts_per_minute",
         .kind = IntegerKind{1},
         .fallback = "100",
         .description = "the number of conflicts per minute above which a warning is logged",
         .environment = "HOLDFAST_MONITORING_ALERT_THRESHOLD_CONFLICTS_PER_MINUTE"},
    };
}

Settings lock_settings() {
    return {
        {.key = "lock.locks_table",
         .kind = TextKind{},
         .fallback = "holdfast_locks",
         .description = "the table of locks; the other lock tables are named after it",
         .environment = "HOLDFAST_LOCK_LOCKS_TABLE"},
        {.key = "lock.fences_table",
         .kind = TextKind{},
         .fallback = "holdfast_fences",
         .description = "the table of fence counters",
         .environment = "HOLDFAST_LOCK_FENCES_TABLE"},
        {.key = "lock.accept_lost_commits",
         .kind = BoolKind{},
         .fallback = "false",
         .description = "allow locks on a database that may lose commits, and with them fences",
         .environment = "HOLDFAST_LOCK_ACCEPT_LOST_COMMITS"},
    };
}

Settings process_settings() {
    ChoiceKind level_names;
    for (const auto& [name, level] : levels) {
        level_names.choices.emplace_back(name);
    }
    return {
        {.key = "db",
         .kind = TextKind{},
         .description = "the database: sqlite:FILE, postgres://HOST/NAME or dsql://ENDPOINT",
         .environment = "HOLDFAST_DB",
         .secrecy = Secrecy::url_password},
        {.key = "log.level",
         .kind = level_names,
         .fallback = "info",
         .description = "the lowest level that is logged",
         .environment = "HOLDFAST_LOG_LEVEL"},
        {.key = "log.format",
         .kind = ChoiceKind{{"text", "json"}},
         .fallback = "text",
         .description = "the format of log lines: key=value text or one JSON object per line",
         .environment = "HOLDFAST_LOG_FORMAT"},
        {.key = "log.file",
         .kind = TextKind{},
         .description = "the log file; standard error if empty",
         .environment = "HOLDFAST_LOG_FILE"},
        {.key = "metrics.address",
         .kind = TextKind{},
         .description = "host:port of /metrics, /healthz and /readyz; not served if empty",
         .environment = "HOLDFAST_METRICS_ADDRESS"},
    };
}

}  // namespace

Settings holdfast_settings() {
    Settings all = process_settings();
    const Settings retry = retry_settings();
    for (const Settings& part :
         {retry, per_operation(retry), monitoring_settings(), lock_settings()}) {
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

LogOptions log_options(const Config& config) {
    LogOptions options;
    for (const auto& [name, level] : levels) {
        if (name == config.text("log.level")) {
            options.level = level;
        }
    }
    options.format = config.text("log.format") == "json" ? LogFormat::json : LogFormat::text;
    options.file = config.text("log.file");
    return options;
}

}  // namespace holdfast
