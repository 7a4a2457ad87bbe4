#include <holdfast/dsql/source.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "auth/sigv4.hpp"
#include "fleet/fleet_part.hpp"
#include <fmt/ranges.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/http_client.hpp>
#include <holdfast/base/percent.hpp>
#include <holdfast/dsql/endpoint.hpp>
#include <holdfast/pool/open_phases.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::dsql {
namespace {

constexpr std::string_view form = "write dsql://USER@ENDPOINT/DATABASE";
// Options of the URL that are passed to libpq. The service would refuse others, or they are ours.
constexpr std::array passed_on{
    "hostaddr", "port", "sslrootcert", "sslmode", "connect_timeout", "application_name"};
constexpr std::array ours{"region", "profile", "pool", "reservoir"};

template <class Names>
bool among(const Names& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::string decoded(std::string_view text) {
    const auto plain = percent_decoded(text);
    if (!plain || plain->find('\0') != std::string::npos) {
        throw InvalidArgument("the database URL has a bad percent escape; write % as %25");
    }
    return *plain;
}

std::string option(const sql::Url& url, std::string_view name) {
    const auto found = url.options.find(name);
    return found == url.options.end() ? "" : found->second;
}

// user@host:port/database, where parts may be missing.
void parse_rest(std::string_view rest, Target& target) {
    if (!rest.starts_with("//")) {
        throw InvalidArgument(fmt::format("the database URL is malformed; {}", form));
    }
    rest.remove_prefix(2);
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    std::string_view authority = rest.substr(0, slash);
    const std::string database = decoded(rest.substr(std::min(slash + 1, rest.size())));
    const std::size_t at = authority.rfind('@');
    if (at != std::string_view::npos) {
        const std::string_view user = authority.substr(0, at);
        if (user.find(':') != std::string_view::npos) {
            throw InvalidArgument(
                "Aurora DSQL takes no passwords; leave it out of the database URL and sign in with "
                "AWS credentials");
        }
        if (!user.empty()) {
            target.key.user = decoded(user);
        }
        authority.remove_prefix(at + 1);
    }
    const std::size_t colon = authority.find(':');
    if (colon != std::string_view::npos) {
        target.params["port"] = authority.substr(colon + 1);
    }
    target.key.host = normal_endpoint(authority);
    if (target.key.host.empty()) {
        throw InvalidArgument(fmt::format("the database URL names no endpoint; {}", form));
    }
    target.params["dbname"] = database.empty() ? "postgres" : database;
}

void check_port(const std::string& text) {
    int port = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (fault != std::errc{} || end != text.data() + text.size() || port < 1 || port > 65'535) {
        throw InvalidArgument(fmt::format("'{}' in the database URL is not a port", text));
    }
}

void check_mode(const std::string& mode) {
    if (mode != "verify-full" && mode != "verify-ca" && mode != "require") {
        throw InvalidArgument(fmt::format(
            "sslmode={} does not guarantee encryption, which Aurora DSQL demands; use verify-full",
            mode));
    }
}

// Signs in with a fresh token for each connection, when the fleet allows one.
class Source final : public sql::ConnectionSource {
public:
    Source(Target target,
           FleetConfig config,
           std::shared_ptr<TokenCache> tokens,
           std::shared_ptr<FleetPart> fleet)
        : target_(std::move(target)),
          config_(std::move(config)),
          tokens_(std::move(tokens)),
          fleet_(std::move(fleet)) {
        Source::attach(target_.connections, [](int) {});
    }
    ~Source() override { Source::detach(); }
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    [[nodiscard]] const sql::Dialect& dialect() const noexcept override {
        return sql::dialect_of(sql::Product::dsql);
    }

    [[nodiscard]] sql::ConnectParams prepare(Deadline deadline,
                                             const std::stop_token& stop,
                                             pool::OpenPhases& phases) override {
        Right right = fleet_->admit(deadline, stop, phases);
        try {
            phases.enter(pool::OpenPhase::token);
            sql::ConnectParams params = target_.params;
            params["password"] =
                tokens_->get(target_.key, deadline.earlier(Deadline::after(token_patience)), stop)
                    .text;
            const std::lock_guard lock(mutex_);
            rights_.push_back(std::move(right));
            return params;
        } catch (...) {
            fleet_->gone(right);
            throw;
        }
    }

    bool opened(const sql::ConnectParams& params,
                const sql::DatabaseError* failure) noexcept override {
        if (failure == nullptr) {
            return false;
        }
        closed();
        if (failure->state() == sql::SqlState{"53400"}) {
            fleet_->refused();
        }
        if (failure->state() == sql::SqlState{"53300"}) {
            fleet_->full();
        }
        if (failure->code() != Code::unauthorized) {
            return false;
        }
        // The next opening gets another token, whatever the reason was.
        tokens_->invalidate(target_.key, params.find("password")->second);
        return sql::is_login_expired(*failure);
    }

    // All rights are equal, so any of them can be given back.
    void closed() noexcept override {
        Right right;
        {
            const std::lock_guard lock(mutex_);
            if (rights_.empty()) {
                return;
            }
            right = std::move(rights_.back());
            rights_.pop_back();
        }
        fleet_->gone(right);
    }

    [[nodiscard]] pool::Config pool_config(int target) const override {
        pool::Config config = dsql::pool_config(config_, target);
        config.warm_up_max += fleet_->delay();  // Nothing is opened before that.
        return config;
    }

    void attach(int target, std::function<void(int)> shed) override {
        detach();
        holder_ = fleet_->join(target, std::move(shed));
    }

    void detach() noexcept override {
        if (const auto holder = std::exchange(holder_, std::nullopt)) {
            fleet_->leave(*holder);
        }
    }

private:
    const Target target_;
    const FleetConfig config_;
    const std::shared_ptr<TokenCache> tokens_;
    const std::shared_ptr<FleetPart> fleet_;
    std::optional<ShedRegistry::Id> holder_;
    std::mutex mutex_;
    std::vector<Right> rights_;  // One for each connection.
};

// One token cache for each profile and one FleetPart for each endpoint, made when first needed:
// they have threads.
class Caches {
public:
    explicit Caches(SourceOptions options) : options_(std::move(options)) {}

    [[nodiscard]] const SourceOptions& options() const noexcept { return options_; }

    std::shared_ptr<TokenCache> of(const Target& target) {
        const std::lock_guard lock(mutex_);
        auto cache = caches_[target.profile].lock();
        if (!cache) {
            cache = std::make_shared<TokenCache>(provider(target),
                                                 TokenCacheOptions{.clock = options_.clock,
                                                                   .metrics = options_.metrics,
                                                                   .logger = options_.logger});
            caches_[target.profile] = cache;
        }
        return cache;
    }

    std::shared_ptr<FleetPart> fleet_of(const Target& target) {
        const std::lock_guard lock(mutex_);
        auto part = fleets_[target.key.host].lock();
        if (!part) {
            part = std::make_shared<FleetPart>(options_.fleet,
                                               target.key.host,
                                               target.key.region,
                                               provider(target),
                                               options_.metrics,
                                               options_.logger);
            fleets_[target.key.host] = part;
        }
        return part;
    }

private:
    [[nodiscard]] std::shared_ptr<CredentialProvider> provider(const Target& target) const {
        if (options_.credentials) {
            return options_.credentials;
        }
        return std::make_shared<CredentialChain>(CredentialOptions{.profile = target.profile,
                                                                   .region = target.key.region,
                                                                   .clock = options_.clock,
                                                                   .logger = options_.logger});
    }

    const SourceOptions options_;
    std::mutex mutex_;
    std::map<std::string, std::weak_ptr<TokenCache>> caches_;
    std::map<std::string, std::weak_ptr<FleetPart>> fleets_;  // By endpoint.
};

}  // namespace

std::string usual_region(const std::string& configured) {
    std::string region = configured;
    for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
        if (region.empty()) {
            region = process_variable(name).value_or("");
        }
    }
    return region;
}

Target parse_target(const sql::Url& url,
                    const std::string& application,
                    const std::string& region) {
    Target target;
    target.params = {{"port", "5432"},
                     {"sslmode", "verify-full"},
                     {"sslrootcert", system_ca_file},
                     {"application_name", application},
                     {"connect_timeout", "10"},
                     {"client_encoding", "UTF8"},
                     {"gssencmode", "disable"},
                     {"keepalives_idle", "30"},
                     {"keepalives_interval", "10"},
                     {"keepalives_count", "3"},
                     {"tcp_user_timeout", "30000"}};
    parse_rest(url.rest, target);
    for (const auto& [name, value] : url.options) {
        if (among(passed_on, name)) {
            target.params[name] = value;
        } else if (!among(ours, name)) {
            throw InvalidArgument(
                fmt::format("the database URL has an option '{}' that dsql:// does not know; it "
                            "knows {} and {}",
                            name,
                            fmt::join(passed_on, ", "),
                            fmt::join(ours, ", ")));
        }
    }
    check_port(target.params["port"]);
    check_mode(target.params["sslmode"]);
    target.params["host"] = target.key.host;
    target.params["user"] = target.key.user;
    const std::string pool = option(url, "pool");
    std::from_chars(pool.data(), pool.data() + pool.size(), target.connections);
    target.profile = option(url, "profile");
    target.key.region = option(url, "region");
    if (target.key.region.empty()) {
        target.key.region = region_of(target.key.host).value_or(region);
    }
    if (target.key.region.empty()) {
        throw InvalidArgument(
            fmt::format("the name {} does not say its region; add ?region=us-east-1 to the "
                        "database URL, or set REGION or AWS_REGION",
                        target.key.host));
    }
    return target;
}

sql::SourceFactory dsql_source(SourceOptions options) {
    return [caches = std::make_shared<Caches>(std::move(options))](const sql::Url& url) {
        FleetConfig config = caches->options().fleet;
        Target target =
            parse_target(url, caches->options().application, usual_region(config.region));
        target.key.life = config.token_life;
        if (!url.options.contains("connect_timeout")) {
            target.params["connect_timeout"] = fmt::to_string(config.connect_timeout.count());
        }
        config.reservoir.enabled = sql::reservoir_option(url).value_or(config.reservoir.enabled);
        auto tokens = caches->of(target);
        auto fleet = caches->fleet_of(target);
        return std::make_unique<Source>(
            std::move(target), std::move(config), std::move(tokens), std::move(fleet));
    };
}

}  // namespace holdfast::dsql
