// What workflows cost, against the bare database.
#pragma once

#include <memory>

#include <holdfast/bench/suite.hpp>

namespace holdfast::bench {

// <db>.<scenario>.k<in flight>, db being sqlite or postgres. The limit is, on a file, a plain loop
// on the bare C API with one small commit each; on a server, pgbench's one-row UPDATE by as many
// clients.
//   chain1, chain5   that many activities in a row, started and awaited by k clients
//   parallel         5 activities of 10 ms at once, 2 + 2 threads (ceiling 40 workflows/s)
//   parallel0        the same without the delay, 8 + 32 threads
//   fanout           1,000 activities at once
//   timers           a workflow that sleeps 10 ms
//   longhistory      turns of a workflow whose history has 5,000 events
//   largepayload     40 activities and 5 children that carry 10 to 100 KB each
[[nodiscard]] std::unique_ptr<Suite> make_flow_suite(const Place& place);

}  // namespace holdfast::bench
