// What one durable write through the sql floor costs.
#pragma once

#include <memory>

#include <holdfast/bench/suite.hpp>

namespace holdfast::bench {

// pg.update.cN: one fenced UPDATE per transaction by N clients, against pgbench with the same
// statement on the same server. sqlite.commit.wN: the same by N writers on a file, against a plain
// loop on the bare C API with one commit each.
[[nodiscard]] std::unique_ptr<Suite> make_sql_suite(const WaitTicket& place);

}  // namespace holdfast::bench
