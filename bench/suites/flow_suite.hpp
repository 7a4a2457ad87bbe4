// What workflows cost, against the bare database.
#pragma once

#include <memory>

#include <holdfast/bench/suite.hpp>

namespace holdfast::bench {

// <db>.<scenario>.k<in flight>, db being sqlite or postgres. The limit is, on a file, a plain loop
// on the bare C API with one small commit each; on a server, pgbench's one-row UPDATE by as many
// clients.
//   chain1, chain5   that many activities in a row, started and awaited by k clients
//   parallel         5 activities of 10 ms at once, 1 + 1 (s1) and 2 + 2 (s2) threads, which can
//                    do 20 and 40 workflows/s: of_ceiling; slots_busy is the share of the time in
//                    which the activity threads worked, which tells us from a machine that is late
//   parallel0        the same without the delay, 8 + 32 threads
//   fanout           1,000 activities at once
//   timers           10,000 workflows that sleep until one moment; how many wake up per second,
//                    how late, and what the process takes while all are asleep
//   longhistory      turns of a workflow whose history has 5,000 events: p50_us while it is in
//                    memory, cold_us when it has to be read, short_p50_us of one without a history
//   largepayload     40 activities and 5 children that carry 10 to 100 KB each, 1 + 1 threads,
//   which
//                    can do 5 workflows/s
// p50_us and p99_us are of whole workflows, from the start to the answer; latency_in_commits is
// p50_us in commits of the limit.
[[nodiscard]] std::unique_ptr<Suite> make_flow_suite(const WaitTicket& place);

}  // namespace holdfast::bench
