// Turns among the writers of one shard in this process.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include <holdfast/sql/dialect.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::store {

// Safe to share between threads. Shards share a fixed number of stripes: two that meet at one wait
// for each other without need, and without harm.
class ShardMutex {
    struct Stripe {
        std::mutex mutex;
        std::condition_variable_any freed;
        bool taken = false;
    };

public:
    explicit ShardMutex(const sql::Dialect& dialect) noexcept : needed_(!dialect.locks_block) {}

    // Held while it lives.
    class Hold {
    public:
        ~Hold();
        Hold(const Hold&) = delete;
        Hold& operator=(const Hold&) = delete;

    private:
        friend class ShardMutex;
        explicit Hold(Stripe* stripe) noexcept : stripe_(stripe) {}
        Stripe* stripe_;
    };

    // Waits for the shard's turn. Where locks block, the database does that, and here is nothing to
    // wait for. Throws `deadline` or `cancelled`, with nothing done.
    [[nodiscard]] Hold take(ShardId shard, const Call& call);

private:
    static constexpr std::size_t count = 64;

    bool needed_;
    std::array<Stripe, count> stripes_;
};

}  // namespace holdfast::store
