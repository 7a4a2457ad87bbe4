// What the gateway of Aurora DSQL costs.
#pragma once

#include <memory>

#include <holdfast/bench/suite.hpp>

namespace holdfast::bench {

// gateway.update.cN: pgbench's one-row UPDATE by N clients through the gateway, against the same
// program with the same script straight to the PostgreSQL below, with the same durability.
[[nodiscard]] std::unique_ptr<Suite> make_gateway_suite(const WaitTicket& place);

}  // namespace holdfast::bench
