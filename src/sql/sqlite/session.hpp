// One body's view of a SQLite transaction. Statements run as they are sent; the replies wait here.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver.hpp"
#include "sqlite/connection.hpp"
#include "sqlite/database_clock.hpp"
#include "sqlite/hub.hpp"

namespace holdfast::sql::sqlite {

// Serves one body after another; `start` makes it forget the last one.
class SqliteSession final : public Session {
public:
    SqliteSession(Connection& connection, DatabaseClock& clock) noexcept
        : connection_(connection), clock_(clock) {}

    void start() noexcept;
    // After the body: throws what forbids a commit, even if the body swallowed it.
    void settle();
    [[nodiscard]] std::vector<Notice> take_notices() noexcept { return std::move(notices_); }

    // A statement with the clocks' readings still missing.
    Result run(const Call& call, std::int64_t clock_offset_us);

    std::size_t send(const Call& call, bool keep_reply) override;
    Result take(std::size_t ticket) override;
    void run_script(const std::string& text) override;
    void notify(std::string_view channel, std::string_view payload) override;
    std::int64_t clock_parameter(ClockReading reading, std::int64_t offset_us) override;
    [[nodiscard]] bool replies_cost() const noexcept override { return false; }
    void check_at_commit(std::size_t ticket) override { fences_.push_back(ticket); }

private:
    // After a failure only the end follows.
    template <class Work>
    auto guarded(Work work) -> decltype(work());

    Connection& connection_;
    DatabaseClock& clock_;
    std::optional<std::int64_t> now_us_;             // Read once per body.
    std::optional<DatabaseClock::LeaseTime> lease_;  // The same.
    std::vector<Result> replies_;                    // By ticket.
    std::vector<std::size_t> fences_;
    std::vector<Notice> notices_;
    std::exception_ptr failure_;
};

}  // namespace holdfast::sql::sqlite
