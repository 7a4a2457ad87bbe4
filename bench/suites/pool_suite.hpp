// What borrowing a connection costs when it is open already.
#pragma once

#include <memory>

#include <holdfast/bench/suite.hpp>

namespace holdfast::bench {

// pool.warm.tN: N threads borrow and return, with a connection for each of them, against the least
// that such a pool can be: a mutex and a deque, with the same looks at the clock and the
// connection. No database is used. Figures: how long one in many borrows took, of ours and of the
// bare pool, and how often a pair asked for memory.
[[nodiscard]] std::unique_ptr<Suite> make_pool_suite(const WaitTicket& place);

}  // namespace holdfast::bench
