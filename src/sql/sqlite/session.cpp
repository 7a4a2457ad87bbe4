#include "sqlite/session.hpp"

#include <utility>

#include <holdfast/base/assert.hpp>

namespace holdfast::sql::sqlite {

std::int64_t DatabaseClock::now_us() {
    const std::int64_t read = clock_.wall_now().time_since_epoch().count();
    std::int64_t newest = newest_us_.load();
    while (newest < read && !newest_us_.compare_exchange_weak(newest, read)) {
    }
    return newest < read ? read : newest;
}

void SqliteSession::start() noexcept {
    now_us_.reset();
    replies_.clear();
    fences_.clear();
    notices_.clear();
    failure_ = nullptr;
}

void SqliteSession::settle() {
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    if (connection_.has_deferred_violations()) {
        // Found at COMMIT, it would fail everybody who shares the transaction.
        throw DatabaseError(SqlState{"23503"},
                            Outcome::not_applied,
                            "the transaction failed: a FOREIGN KEY constraint that is checked at "
                            "its end is violated");
    }
    for (const std::size_t ticket : fences_) {
        if (replies_[ticket].changed != 1) {
            throw FenceMissed{ticket};
        }
    }
}

template <class Work>
auto SqliteSession::guarded(Work work) -> decltype(work()) {
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    try {
        return work();
    } catch (...) {
        failure_ = std::current_exception();
        throw;
    }
}

Result SqliteSession::run(const Call& call, std::int64_t clock_offset_us) {
    return guarded([&] {
        std::optional<std::int64_t> clock_us;
        if (call.statement->reads_clock) {
            clock_us = clock_parameter(clock_offset_us);
        }
        return connection_.execute(call, clock_us, true);
    });
}

std::size_t SqliteSession::send(const Call& call, bool keep_reply) {
    return guarded([&] {
        Result reply = connection_.execute(call, std::nullopt, keep_reply);
        if (keep_reply) {
            replies_.push_back(std::move(reply));
        }
        return replies_.size() - 1;
    });
}

Result SqliteSession::take(std::size_t ticket) {
    HOLDFAST_ASSERT(ticket < replies_.size());
    // The count stays, for a fence that is checked later.
    return {std::exchange(replies_[ticket].rows, {}), replies_[ticket].changed};
}

void SqliteSession::run_script(const std::string& text) {
    guarded([&] { connection_.run_script(text); });
}

void SqliteSession::notify(std::string_view channel, std::string_view payload) {
    notices_.push_back(Notice{std::string(channel), std::string(payload)});
}

std::int64_t SqliteSession::clock_parameter(std::int64_t offset_us) {
    if (!now_us_) {
        now_us_ = clock_.now_us();
    }
    return *now_us_ + offset_us;
}

}  // namespace holdfast::sql::sqlite
