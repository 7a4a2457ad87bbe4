// The retry engine: the one place where transactions are run, counted and retried.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "conflict_watch.hpp"
#include "driver.hpp"

#include <holdfast/base/log.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::sql {

// The series of one operation, made once.
struct OperationMetrics {
    Histogram latency;
    Histogram backoff;
    Histogram attempts;
    Gauge active;
    Counter condition_failed;
    Counter exhausted;
    Counter unsupported;
};

// Safe to share between threads.
class Engine {
public:
    Engine(std::unique_ptr<Driver> driver, DatabaseOptions options);

    [[nodiscard]] Driver& driver() noexcept { return *driver_; }
    [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
    [[nodiscard]] const Dialect& dialect() const noexcept { return driver_->dialect(); }
    [[nodiscard]] std::int64_t clock_offset_us() const noexcept {
        return options_.clock_offset_us == nullptr ? 0 : options_.clock_offset_us->load();
    }

    void transact(std::string_view operation,
                  const TxOptions& options,
                  const std::function<void(Tx&)>& body);
    Result run(std::string_view operation,
               const TxOptions& options,
               const Statement& statement,
               std::span<const Param> args);
    Result run(std::string_view operation, const TxOptions& options, const BuiltQuery& query);
    Result run_fenced(std::string_view operation,
                      const TxOptions& options,
                      const Guard& guard,
                      const FencedStatement& statement,
                      std::span<const Param> args);
    bool try_fenced(std::string_view operation,
                    const TxOptions& options,
                    const Guard& guard,
                    const FencedStatement& statement,
                    std::span<const Param> args);

    // The statement in this database's dialect, rendered once. Refuses a wrong number of arguments.
    const Rendered& rendered(const Statement& statement, std::size_t arguments);

private:
    struct Attempts;
    // A statement's constant text, and which names fill its holes.
    struct RenderedKey {
        const char* text;
        std::uint64_t names;
        friend bool operator==(const RenderedKey&, const RenderedKey&) = default;
    };
    struct RenderedKeyHash {
        std::size_t operator()(const RenderedKey& key) const noexcept {
            return std::hash<const char*>{}(key.text) ^ (key.names * 0x9E3779B97F4A7C15U);
        }
    };

    Result run_rendered(std::string_view operation,
                        const TxOptions& options,
                        const Rendered& text,
                        std::span<const Param> args);
    Result run_guarded(const AttemptOptions& attempt,
                       const Rendered& text,
                       std::span<const Param> args);
    // Runs `attempt` until it succeeds or must not be repeated.
    void repeat(std::string_view operation,
                const TxOptions& options,
                const std::function<void(const AttemptOptions&)>& attempt);
    // Classifies the exception in flight: returns if the attempt may be repeated, after the pause.
    void judge(Attempts& attempts, const Error& error);
    void pause(Attempts& attempts, const Error& error);
    void refuse_if_over(const Attempts& attempts) const;
    void count_retry(const Attempts& attempts, const Error& error);
    void count_error(const Attempts& attempts, ErrorClass error_class, const Error& error);

    [[noreturn]] void throw_missed(const Tx::Fence& fence);
    // Reads the tokens that are really there, for the error of a lost guard.
    std::string read_found(const Guard& guard, const FencedStatement& statement);

    [[nodiscard]] RetryPolicy policy_for(std::string_view operation,
                                         const TxOptions& options) const;
    OperationMetrics& metrics_of(std::string_view operation);

    std::unique_ptr<Driver> driver_;
    DatabaseOptions options_;
    Logger& logger_;
    const Clock& clock_;
    ConflictWatch conflicts_;

    std::shared_mutex mutex_;  // Guards both maps; what they hold never moves.
    std::unordered_map<RenderedKey, std::unique_ptr<Rendered>, RenderedKeyHash> rendered_;
    std::map<std::string, std::unique_ptr<OperationMetrics>, std::less<>> operations_;
};

// What a guard's statements are bound to: its key; its key, its tokens and the other arguments.
[[nodiscard]] std::vector<Param> key_args(const Guard& guard);
[[nodiscard]] std::vector<Param> guarded_args(const Guard& guard, std::span<const Param> args);

// "5, 17": the values of a guard's tokens.
[[nodiscard]] std::string describe_tokens(const Guard& guard);
[[nodiscard]] std::string describe_found(const Rows& rows);
// A write under a verified guard changed no row: its text and its guard disagree.
[[noreturn]] void stop_at_missed_write(const Guard& guard, const FencedStatement& statement);
[[nodiscard]] ConditionFailed condition_failed(const Guard& guard, std::string found);

}  // namespace holdfast::sql
