#include "postgres/postgres_driver.hpp"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <optional>

#include "postgres/canceller.hpp"
#include "postgres/connection.hpp"
#include "postgres/listener.hpp"
#include "postgres/pooling.hpp"
#include "postgres/resolver.hpp"
#include "postgres/session.hpp"
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/log.hpp>
#include <holdfast/base/percent.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/pool/open_phases.hpp>
#include <holdfast/pool/pool.hpp>

namespace holdfast::sql {
namespace postgres {
namespace {

constexpr std::chrono::seconds connect_patience{10};

// libpq keeps its own time-out only where it waits itself, and here it never does.
std::chrono::seconds patience_of(const ConnectParams& params) {
    const auto given = params.find("connect_timeout");
    int seconds = 0;
    if (given != params.end()) {
        const std::string& text = given->second;
        std::from_chars(text.data(), text.data() + text.size(), seconds);
    }
    return seconds > 0 ? std::chrono::seconds{seconds} : connect_patience;
}

// Opens physical connections with what the source gives.
class SourceOpener final : public pool::Opener {
public:
    explicit SourceOpener(std::unique_ptr<ConnectionSource> source) : source_(std::move(source)) {}

    [[nodiscard]] const Dialect& dialect() const noexcept { return source_->dialect(); }
    [[nodiscard]] ConnectionSource& source() noexcept { return *source_; }

    std::unique_ptr<pool::Connection> open(Deadline deadline,
                                           std::stop_token stop,
                                           pool::OpenPhases& phases) override {
        try {
            return open_connection(deadline, stop, phases);
        } catch (const DatabaseError& error) {
            throw to_open_error(error);
        }
    }

    std::unique_ptr<Connection> open_connection(Deadline deadline,
                                                const std::stop_token& stop,
                                                pool::OpenPhases& phases) {
        std::unique_ptr<Connection> connection = open_physical(deadline, stop, phases);
        if (!dialect().pooling_proxies) {
            return connection;
        }
        const StopSignal& signal = connection->stop_signal();
        std::optional<std::stop_callback<std::function<void()>>> raise;
        raise.emplace(stop, [&signal] { signal.raise(); });
        pooling_.examine(*connection,
                         source_->settings(),
                         deadline.earlier(Deadline::after(connect_patience)),
                         [&](Deadline soon) {
                             pool::OpenPhases uncounted;
                             return open_physical(soon, stop, uncounted);
                         });
        raise.reset();
        signal.reset();
        return connection;
    }

private:
    std::unique_ptr<Connection> open_physical(Deadline deadline,
                                              const std::stop_token& stop,
                                              pool::OpenPhases& phases) {
        for (bool again = true;; again = false) {
            const ConnectParams params = source_->prepare(deadline, stop, phases);
            try {
                const Deadline soon = deadline.earlier(Deadline::after(patience_of(params)));
                phases.enter(pool::OpenPhase::resolve);
                const ConnectParams addressed = resolver_.resolve(params, soon, stop);
                auto connection =
                    Connection::open(addressed, soon, stop, phases, [this] { source_->closed(); });
                source_->opened(params, nullptr);
                return connection;
            } catch (const DatabaseError& error) {
                if (!source_->opened(params, &error) || !again) {
                    throw;
                }
            } catch (const std::exception& error) {
                const ConnectionLost lost(Outcome::not_applied, error.what());
                source_->opened(params, &lost);
                throw;
            }
        }
    }

    std::unique_ptr<ConnectionSource> source_;
    Resolver resolver_;
    PoolingCheck pooling_;
};

class PostgresDriver final : public Driver {
public:
    PostgresDriver(const pool::Config& config,
                   const DatabaseOptions& options,
                   std::unique_ptr<ConnectionSource> source)
        : opener_(std::move(source)),
          logger_(options.logger == nullptr ? null_logger() : *options.logger),
          pool_(config,
                opener_,
                options.clock == nullptr ? system_clock() : *options.clock,
                options.metrics,
                logger_,
                options.name) {
        opener_.source().attach(config.target, [this](int excess) { pool_.shed(excess); });
        try {
            // Without a session of its own no connection can listen, though all can notify.
            dialect_.notifies =
                open_first(std::max<std::chrono::nanoseconds>(
                    connect_patience, config.warm > 0 ? config.warm_up_max : connect_patience)) &&
                dialect_.notifies;
        } catch (...) {
            opener_.source().detach();
            throw;
        }
        if (config.warm > 0) {
            pool_.warm_up({});
        }
    }
    ~PostgresDriver() override { opener_.source().detach(); }
    PostgresDriver(const PostgresDriver&) = delete;
    PostgresDriver& operator=(const PostgresDriver&) = delete;

    [[nodiscard]] const Dialect& dialect() const noexcept override { return dialect_; }

    void attempt(const AttemptOptions& options,
                 const std::function<void(Session&)>& body) override {
        with_session(options, PgSession::Mode::transaction, [&](PgSession& session) {
            body(session);
            session.commit();
        });
    }

    Result run(const AttemptOptions& options,
               const Call& call,
               std::int64_t clock_offset_us) override {
        std::vector<Param> args(call.args.begin(), call.args.end());
        args.insert(args.end(), call.statement->clocks.size(), Param(clock_offset_us));
        Result result;
        with_session(options, PgSession::Mode::autocommit, [&](PgSession& session) {
            const std::size_t ticket = session.send(Call{call.statement, args}, true);
            session.commit();
            result = session.take(ticket);
        });
        return result;
    }

    [[nodiscard]] std::unique_ptr<Subscription> subscribe(
        std::string_view channel, std::function<void(std::string_view)> wake) override {
        if (!dialect().notifies) {
            return nullptr;
        }
        const std::lock_guard lock(mutex_);
        if (!listener_) {
            listener_ = std::make_unique<Listener>(
                [this](Deadline deadline, const std::stop_token& stop) {
                    pool::OpenPhases phases;
                    return opener_.open_connection(deadline, stop, phases);
                },
                logger_);
        }
        return listener_->subscribe(channel, std::move(wake));
    }

    [[nodiscard]] PoolStats pool_stats() const override {
        const pool::Stats stats = pool_.stats();
        PoolStats answer{.opening = stats.now.opening,
                         .ready = stats.now.ready,
                         .in_use = stats.now.in_use,
                         .waiting = stats.now.waiting,
                         .opened = static_cast<std::int64_t>(stats.opened)};
        for (const std::uint64_t count : stats.closed) {
            answer.closed += static_cast<std::int64_t>(count);
        }
        return answer;
    }

    [[nodiscard]] DriverStats driver_stats() const override {
        return {.commits = counters_.commits.load(),
                .statements = counters_.statements.load(),
                .round_trips = counters_.round_trips.load()};
    }

    void stop(Deadline deadline) override {
        {
            const std::lock_guard lock(mutex_);
            if (listener_) {
                listener_->stop();
            }
        }
        pool_.stop(deadline);
    }

private:
    // To be sure that there is a server, and that it lets us in. Returns whether the connection
    // keeps its session.
    [[nodiscard]] bool open_first(std::chrono::nanoseconds patience) {
        try {
            const pool::Loan loan = pool_.acquire(Deadline::after(patience), {});
            return static_cast<const Connection&>(*loan).keeps_session();
        } catch (const Error& late) {
            // The deadline is our own: report why the openings failed instead.
            if (late.code() == Code::deadline && late.cause()) {
                std::rethrow_exception(late.cause());
            }
            throw;
        }
    }

    // Runs `use` on a connection. One that turns out to be dead before it answered is replaced
    // once, in silence; one whose prepared statements are stale, or are another backend's, is used
    // once more without them.
    template <class Use>
    void with_session(const AttemptOptions& options, PgSession::Mode mode, Use use) {
        for (bool again = true;; again = false) {
            const pool::Lane lane = options.urgent ? pool::Lane::priority : pool::Lane::normal;
            pool::Loan loan = pool_.acquire(options.deadline, options.stop, lane);
            auto& connection = static_cast<Connection&>(*loan);
            PgSession session(connection, opener_.dialect(), options, mode, canceller_, counters_);
            try {
                use(session);
                if (!session.reusable()) {
                    loan.mark_bad();
                }
                return;
            } catch (const DeadOnArrival& dead) {
                loan.mark_bad();
                if (!again) {
                    throw DatabaseError(dead.error);
                }
            } catch (const StaleStatement& stale) {
                session.rollback();
                connection.forget_statements();
                if (stale.other_backend) {
                    connection.lose_session();
                }
                if (!session.reusable()) {
                    loan.mark_bad();
                }
                // A connection without a session has no prepared statements to lose.
                if (!again && !stale.other_backend) {
                    throw DatabaseError(stale.error);
                }
            } catch (...) {
                session.rollback();
                if (!session.reusable()) {
                    loan.mark_bad();
                }
                throw;
            }
        }
    }

    SourceOpener opener_;
    Dialect dialect_ = opener_.dialect();
    Logger& logger_;
    Canceller canceller_;
    Counters counters_;
    pool::Pool pool_;
    std::mutex mutex_;
    std::unique_ptr<Listener> listener_;
};

// The same parameters for every connection.
class PlainSource final : public ConnectionSource {
public:
    PlainSource(ConnectParams params, ConnectParams settings, bool reservoir)
        : params_(std::move(params)), settings_(std::move(settings)), reservoir_(reservoir) {}

    [[nodiscard]] const Dialect& dialect() const noexcept override {
        return dialect_of(Product::postgres);
    }
    [[nodiscard]] ConnectParams prepare(Deadline,
                                        const std::stop_token&,
                                        pool::OpenPhases&) override {
        return params_;
    }
    bool opened(const ConnectParams&, const DatabaseError*) noexcept override { return false; }
    void closed() noexcept override {}
    [[nodiscard]] const ConnectParams& settings() const noexcept override { return settings_; }
    [[nodiscard]] pool::Config pool_config(int target) const override {
        return reservoir_ ? pool::reservoir(target) : ConnectionSource::pool_config(target);
    }

private:
    const ConnectParams params_;
    const ConnectParams settings_;
    const bool reservoir_;
};

using ParsedOptions = std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)>;

// Null if libpq refuses it. Its words are dropped: they quote the URL, with any password in it.
ParsedOptions libpq_parsed(const std::string& conninfo) {
    char* error = nullptr;
    PQconninfoOption* const options = libpq().PQconninfoParse(conninfo.c_str(), &error);
    libpq().PQfreemem(error);
    return {options, libpq().PQconninfoFree};
}

void check_option_is_known(const std::string& name) {
    const bool plausible = std::ranges::all_of(
        name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
    if (plausible && libpq_parsed("postgres://?" + name + "=") != nullptr) {
        return;
    }
    throw InvalidArgument(
        fmt::format("the database URL has an option{} that PostgreSQL does not know",
                    plausible ? fmt::format(" '{}'", name) : ""));
}

// libpq's own parser splits the URL.
ConnectParams libpq_params(const std::string& conninfo) {
    const ParsedOptions options = libpq_parsed(conninfo);
    if (options == nullptr) {
        throw InvalidArgument(
            "the database URL is malformed; write postgres://user@host:5432/database, with % as "
            "%25 in a user's name or password");
    }
    ConnectParams params;
    for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
        if (option->val != nullptr) {
            params[option->keyword] = option->val;
        }
    }
    return params;
}

// What libpq would refuse only when it connects, and then as if there were no server.
void check_values(const ConnectParams& params) {
    struct Choice {
        std::string_view name;
        std::initializer_list<std::string_view> values;
    };
    static const std::initializer_list<Choice> choices{
        {"sslmode", {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}},
        {"channel_binding", {"disable", "prefer", "require"}},
        {"gssencmode", {"disable", "prefer", "require"}},
        {"target_session_attrs",
         {"any", "read-write", "read-only", "primary", "standby", "prefer-standby"}}};
    for (const Choice& choice : choices) {
        const auto given = params.find(std::string(choice.name));
        if (given == params.end() ||
            std::ranges::find(choice.values, given->second) != choice.values.end()) {
            continue;
        }
        throw InvalidArgument(fmt::format("the option {}={} of the database URL is not one of {}",
                                          choice.name,
                                          given->second,
                                          fmt::join(choice.values, ", ")));
    }
}

bool is_ours(std::string_view option) {
    return option == "pool" || option == "reservoir" || option == "statement_timeout" ||
           option == "lock_timeout";
}

int positive(const std::string& name, const std::string& text, int most) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > most) {
        throw InvalidArgument(fmt::format(
            "the option {}={} of the database URL is not a number from 1 to {}", name, text, most));
    }
    return value;
}

void add_timeout(const Url& url, const std::string& name, ConnectParams& settings) {
    const auto option = url.options.find(name);
    if (option == url.options.end()) {
        return;
    }
    const auto limit = std::chrono::ceil<std::chrono::milliseconds>(parse_duration(option->second));
    settings[name] = std::to_string(limit.count());
}

}  // namespace
}  // namespace postgres

std::unique_ptr<ConnectionSource> postgres_source(const Url& url, const DatabaseOptions& options) {
    std::string conninfo = "postgres:" + url.rest;
    char separator = '?';
    for (const auto& [name, value] : url.options) {
        if (postgres::is_ours(name)) {
            continue;
        }
        postgres::check_option_is_known(name);
        conninfo +=
            fmt::format("{}{}={}", std::exchange(separator, '&'), name, percent_encoded(value));
    }
    if (!url.rest.starts_with("//")) {
        throw InvalidArgument(
            "the database URL is malformed; write postgres://user@host:5432/database");
    }
    ConnectParams params = postgres::libpq_params(conninfo);
    postgres::check_values(params);
    params.try_emplace("application_name", options.application);
    params.try_emplace("connect_timeout", "10");
    params.try_emplace("keepalives_idle", "30");
    params.try_emplace("keepalives_interval", "10");
    params.try_emplace("keepalives_count", "3");
    params.try_emplace("tcp_user_timeout", "30000");
    params["client_encoding"] = "UTF8";
    ConnectParams settings;
    postgres::add_timeout(url, "statement_timeout", settings);
    postgres::add_timeout(url, "lock_timeout", settings);
    return std::make_unique<postgres::PlainSource>(
        std::move(params), std::move(settings), reservoir_option(url).value_or(false));
}

std::unique_ptr<Driver> open_postgres(const Url& url,
                                      const DatabaseOptions& options,
                                      std::unique_ptr<ConnectionSource> source) {
    constexpr int pool_max = 10'000;
    int target = options.connections;
    const auto size = url.options.find("pool");
    if (size != url.options.end()) {
        target = postgres::positive("pool", size->second, pool_max);
    }
    const pool::Config config = source->pool_config(target);
    return std::make_unique<postgres::PostgresDriver>(config, options, std::move(source));
}

}  // namespace holdfast::sql
