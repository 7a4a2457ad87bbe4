// Where connections to a PostgreSQL-speaking server come from.
//
// Plain PostgreSQL has a fixed set of parameters. Other servers need more before each opening: a
// fresh password, a permit, a place among the cluster's connections. They plug in here, so
// that code above this floor is the same for all of them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include <holdfast/base/clock.hpp>
#include <holdfast/pool/config.hpp>
#include <holdfast/sql/dialect.hpp>
#include <holdfast/sql/error.hpp>

namespace holdfast::pool {
class OpenPhases;
}

namespace holdfast::sql {

// libpq's keywords and values: host, port, user, password, dbname, sslmode, ...
using ConnectParams = std::map<std::string, std::string, std::less<>>;

// Called from background threads, several at a time.
class ConnectionSource {
public:
    virtual ~ConnectionSource() = default;

    [[nodiscard]] virtual const Dialect& dialect() const noexcept = 0;

    // Parameters for one physical connection that is opened next. May block until `deadline`, for
    // a permit or a token, and says so in `phases`; throws Error if there is none.
    [[nodiscard]] virtual ConnectParams prepare(Deadline deadline,
                                                const std::stop_token& stop,
                                                pool::OpenPhases& phases) = 0;

    // What became of that opening: null if it succeeded. `prepare` and `opened` come in pairs. True
    // if a failure is worth one more try at once, with fresh parameters; a second failure is final.
    virtual bool opened(const ConnectParams& params, const DatabaseError* failure) noexcept = 0;

    // One connection that had been opened is closed.
    virtual void closed() noexcept = 0;

    // Settings that every transaction runs with: names and values of PostgreSQL, in milliseconds
    // where they are times. They go past ConnectParams, because a proxy may refuse them there.
    [[nodiscard]] virtual const ConnectParams& settings() const noexcept {
        static const ConnectParams none;
        return none;
    }

    // How a pool of at most `target` connections keeps them. Here: it opens one when it is needed.
    [[nodiscard]] virtual pool::Config pool_config(int target) const {
        pool::Config config;
        config.target = target;
        config.fail_fast = pool::FailFast::always;
        return config;
    }

    // A pool of at most `target` connections is going to open them. Where the right to hold
    // connections can be lost, shed(n) says from any thread that n of them must go; shed(0) takes
    // it back. Requires: detach() before what `shed` refers to is gone; it waits for a call under
    // way.
    // NOLINTNEXTLINE(performance-unnecessary-value-param): an override keeps `shed`.
    virtual void attach(int /*target*/, std::function<void(int)> /*shed*/) {}
    virtual void detach() noexcept {}
};

struct Url;

// Makes the source for one URL of a scheme such as "dsql".
using SourceFactory = std::function<std::unique_ptr<ConnectionSource>(const Url& url)>;

}  // namespace holdfast::sql
