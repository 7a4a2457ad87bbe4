// An HTTP port on which a running gateway is told to inject faults.
//
//   POST   /faults       {"point":"commit","fault":"OC000","nth":2,"times":1,"cluster":"..."}
//   DELETE /faults       forgets all rules
//   GET    /stats        connections, commits, conflicts, ...
//   POST   /hang-up      {"cluster":"..."}: ends its connections, or all
//   POST   /early-abort  {"on":true}: for connections opened from now on
//
// Points are connect, statement and commit. Faults are OC000, OC001, XX000, XX000-after, EOF,
// EOF-after, 53300 and 53400; "after" means that the work was done nevertheless. A POST needs a
// body, {} for the defaults; a body that is empty or not understood is a 400 with the reason.
// Requests that a web page of another site makes a browser send are a 403, also those that come
// under a foreign Host name.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/base/http.hpp>
#include <holdfast/dsql/gateway.hpp>

namespace holdfast::dsql {

// Invalid_argument if the text is not such an object.
[[nodiscard]] FaultRule fault_rule_from_json(std::string_view text);

// One JSON object.
[[nodiscard]] std::string to_json(const GatewayStats& stats);

// Serves from construction to destruction. It has no login.
class GatewayControl {
public:
    // Requires: `gateway` outlives this object. Unavailable if the address cannot be bound.
    GatewayControl(Gateway& gateway, const HttpAddress& address);

    [[nodiscard]] int port() const noexcept { return server_.port(); }

private:
    HttpServer server_;
};

}  // namespace holdfast::dsql
