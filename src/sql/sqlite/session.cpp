#include "sqlite/session.hpp"

#include <array>
#include <span>
#include <utility>

#include <holdfast/base/assert.hpp>

namespace holdfast::sql::sqlite {

void SqliteSession::start() noexcept {
    now_us_.reset();
    lease_.reset();
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
        // Found at COMMIT, it would fail all bodies that share the transaction.
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
        const std::vector<ClockReading>& clocks = call.statement->clocks;
        std::array<std::int64_t, 3> readings{};
        HOLDFAST_ASSERT(clocks.size() <= readings.size());
        for (std::size_t i = 0; i < clocks.size(); ++i) {
            readings[i] = clock_parameter(clocks[i], clock_offset_us);
        }
        return connection_.execute(call, std::span(readings).first(clocks.size()), true);
    });
}

std::size_t SqliteSession::send(const Call& call, bool keep_reply) {
    return guarded([&] {
        Result reply = connection_.execute(call, {}, keep_reply);
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

std::int64_t SqliteSession::clock_parameter(ClockReading reading, std::int64_t offset_us) {
    if (reading == ClockReading::now) {
        if (!now_us_) {
            now_us_ = clock_.now_us();
        }
        return *now_us_ + offset_us;
    }
    if (!lease_) {
        lease_ = clock_.lease_time(connection_);
    }
    return reading == ClockReading::lease ? lease_->now_us + offset_us : lease_->epoch_us;
}

}  // namespace holdfast::sql::sqlite
