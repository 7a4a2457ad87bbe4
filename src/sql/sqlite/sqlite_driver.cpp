#include "sqlite/sqlite_driver.hpp"

#include <mutex>
#include <optional>
#include <utility>

#include "sqlite/connection.hpp"
#include "sqlite/group_commit.hpp"
#include "sqlite/hub.hpp"
#include "sqlite/readers.hpp"
#include "sqlite/session.hpp"
#include "sqlite/settings.hpp"
#include <fmt/core.h>

namespace holdfast::sql {
namespace sqlite {
namespace {

class SqliteDriver final : public Driver {
public:
    SqliteDriver(Settings settings, const DatabaseOptions& options)
        : settings_(std::move(settings)),
          clock_(options.clock == nullptr ? system_clock() : *options.clock),
          hub_(options.logger == nullptr ? null_logger() : *options.logger),
          readers_(settings_, clock_, counters_),
          writer_(std::in_place, settings_, Role::writer, counters_),
          group_(*writer_, clock_, hub_, counters_) {}
    // Waits for bodies that run, however long they take: they use what is destroyed here.
    ~SqliteDriver() override {
        stop(Deadline::after(std::chrono::hours{24}));
        group_.wait_until_idle();
        readers_.wait_until_idle();
        close_connections();
    }
    SqliteDriver(const SqliteDriver&) = delete;
    SqliteDriver& operator=(const SqliteDriver&) = delete;

    [[nodiscard]] const Dialect& dialect() const noexcept override {
        return dialect_of(Product::sqlite);
    }

    void attempt(const AttemptOptions& options,
                 const std::function<void(Session&)>& body) override {
        if (!options.read_only && settings_.read_only) {
            throw DatabaseError(SqlState{"42501"},
                                Outcome::not_applied,
                                fmt::format("'{}' was opened with readonly=1; open it without to "
                                            "write",
                                            settings_.path));
        }
        // A database in memory has one connection.
        if (options.read_only && !settings_.memory) {
            readers_.attempt(options, body);
        } else {
            group_.attempt(options, body);
        }
    }

    Result run(const AttemptOptions& options,
               const Call& call,
               std::int64_t clock_offset_us) override {
        struct {
            const Call& call;
            std::int64_t clock_offset_us;
            Result result;
        } one{call, clock_offset_us, {}};
        // Captures one reference, so that no memory is allocated for it.
        attempt(options, [&one](Session& session) {
            one.result = static_cast<SqliteSession&>(session).run(one.call, one.clock_offset_us);
        });
        return std::move(one.result);
    }

    [[nodiscard]] std::unique_ptr<Subscription> subscribe(
        std::string_view channel, std::function<void(std::string_view)> wake) override {
        return hub_.subscribe(channel, std::move(wake));
    }

    [[nodiscard]] PoolStats pool_stats() const override {
        PoolStats stats = readers_.stats();
        const std::lock_guard lock(mutex_);
        const bool busy = group_.busy();
        const bool open = writer_.has_value();
        stats.waiting += static_cast<int>(group_.waiting());
        stats.waiting += open && writer_->waits_for_lock() ? 1 : 0;  // For another process.
        stats.in_use += open && busy ? 1 : 0;
        stats.ready += open && !busy ? 1 : 0;
        stats.opened += 1;
        stats.closed += open ? 0 : 1;
        return stats;
    }

    [[nodiscard]] DriverStats driver_stats() const override {
        return {.commits = counters_.commits.load(), .statements = counters_.statements.load()};
    }

    void stop(Deadline deadline) override {
        readers_.close();
        group_.close();
        const bool no_reader = readers_.drain(deadline);
        const bool no_writer = group_.drain(deadline);
        if (no_reader && no_writer) {
            close_connections();
        }
    }

private:
    void close_connections() {
        const std::lock_guard lock(mutex_);
        readers_.close_connections();
        if (writer_ && !settings_.memory && !settings_.read_only) {
            writer_->checkpoint();
        }
        writer_.reset();
    }

    const Settings settings_;
    Counters counters_;
    DatabaseClock clock_;
    Hub hub_;
    Readers readers_;
    mutable std::mutex mutex_;
    std::optional<Connection> writer_;  // Closed by `stop`.
    GroupCommit group_;
};

}  // namespace
}  // namespace sqlite

std::unique_ptr<Driver> open_sqlite(const Url& url, const DatabaseOptions& options) {
    return std::make_unique<sqlite::SqliteDriver>(sqlite::settings_of(url, options.create),
                                                  options);
}

}  // namespace holdfast::sql
