// What it costs to take a lock and give it back.
#pragma once

#include <memory>

#include <holdfast/bench/suite.hpp>

namespace holdfast::bench {

// pg.cycle.distinct.cN: N clients, each taking and releasing a lock of its own, against pgbench's
// one-row UPDATE by as many clients on the same server. pg.cycle.one.cN: the same on one key, where
// everybody waits in line for it. sqlite.cycle.distinct.c8: on a file, against a plain loop on the
// bare C API with one commit each.
[[nodiscard]] std::unique_ptr<Suite> make_locks_suite(const WaitTicket& place);

}  // namespace holdfast::bench
