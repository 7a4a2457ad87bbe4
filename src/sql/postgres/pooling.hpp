// Whether a proxy stands before the server, and what of a session it keeps.
//
// A pooling proxy answers the login itself, with a key of its own for cancel requests. So the
// process id in that key is not the backend's, which pg_backend_pid() tells. A proxy may then lend
// a backend to a client for its whole session, which is as good as none; for one transaction at a
// time, which loses prepared statements, settings and LISTEN between transactions; or for one
// statement at a time, which leaves no transaction.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "postgres/connection.hpp"

#include <holdfast/sql/source.hpp>

namespace holdfast::sql::postgres {

// Looks at every connection of one database when it is opened. Safe to share between threads.
class PoolingCheck {
public:
    // Opens one more connection, for comparison; throws Error.
    using Open = std::function<std::unique_ptr<Connection>(Deadline)>;

    // One round trip if no proxy is there. Tells the connection whether it keeps its session, and
    // gives it the settings, for the session or for each of its transactions. Throws DatabaseError
    // with Code::unsupported if the proxy keeps too little.
    void examine(Connection& connection,
                 const ConnectParams& settings,
                 Deadline deadline,
                 const Open& open);

private:
    [[nodiscard]] bool session_kept_behind(Connection& connection,
                                           Deadline deadline,
                                           const Open& open);

    std::mutex mutex_;
    std::optional<bool> kept_;  // The answer for the proxy that was met.
};

}  // namespace holdfast::sql::postgres
