#include "engine.hpp"

#include <mutex>
#include <utility>

#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/random.hpp>

namespace holdfast::sql {
namespace {

double seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
}

Gauge conflict_gauge(const DatabaseOptions& options) {
    if (options.metrics == nullptr) {
        return {};
    }
    return options.metrics->gauge("holdfast_sql_conflicts_per_minute",
                                  "Conflicts in the last full minute.",
                                  {{"db", options.name}});
}

void require_arguments(const Rendered& text, std::size_t given) {
    if (text.arguments != given) {
        throw InvalidArgument(fmt::format("statement '{}' takes {} arguments, but {} were given",
                                          text.name,
                                          text.arguments,
                                          given));
    }
}

}  // namespace

// One call of `repeat`: what is asked for, and how far it has come.
struct Engine::Attempts {
    std::string_view operation;
    const TxOptions& options;
    RetryPolicy policy;
    OperationMetrics& metrics;
    int made = 0;
    int duplicates = 0;
    std::exception_ptr last = nullptr;  // The newest conflict.
};

Engine::Engine(std::unique_ptr<Driver> driver, DatabaseOptions options)
    : driver_(std::move(driver)),
      options_(std::move(options)),
      logger_(options_.logger == nullptr ? null_logger() : *options_.logger),
      clock_(options_.clock == nullptr ? system_clock() : *options_.clock),
      conflicts_(
          options_.alert_conflicts_per_minute, logger_, conflict_gauge(options_), options_.name) {}

void Engine::transact(std::string_view operation,
                      const TxOptions& options,
                      const std::function<void(Tx&)>& body) {
    repeat(operation, options, [&](const AttemptOptions& attempt) {
        std::vector<Tx::Fence> at_commit;
        try {
            driver_->attempt(attempt, [&](Session& session) {
                at_commit.clear();
                Tx tx(*this, session, attempt.read_only);
                body(tx);
                at_commit = tx.settle();
            });
        } catch (const FenceMissed& missed) {
            for (const Tx::Fence& fence : at_commit) {
                if (fence.ticket == missed.ticket) {
                    throw_missed(fence);
                }
            }
            assertion_failed("a missed fence is one of those to check at commit",
                             std::source_location::current());
        }
    });
}

void Engine::throw_missed(const Tx::Fence& fence) {
    if (fence.verified) {
        stop_at_missed_write(fence.guard, *fence.statement);
    }
    throw condition_failed(fence.guard, read_found(fence.guard, *fence.statement));
}

Result Engine::run(std::string_view operation,
                   const TxOptions& options,
                   const Statement& statement,
                   std::span<const Param> args) {
    return run_rendered(operation, options, rendered(statement, args.size()), args);
}

Result Engine::run(std::string_view operation, const TxOptions& options, const BuiltQuery& query) {
    Rendered text = render(dialect(), query.name, query.text);
    text.once = true;
    require_arguments(text, query.args.size());
    if (text.writes) {
        throw InvalidArgument(
            fmt::format("'{}' was built and writes; only a SELECT may be built", text.name));
    }
    return run_rendered(operation, options, text, query.args);
}

Result Engine::run_rendered(std::string_view operation,
                            const TxOptions& options,
                            const Rendered& text,
                            std::span<const Param> args) {
    Result result;
    if (options.read_only && text.writes) {
        throw InvalidArgument(fmt::format(
            "statement '{}' writes, but the transaction is read only; drop read_only", text.name));
    }
    repeat(operation, options, [&](const AttemptOptions& attempt) {
        result = driver_->run(attempt, Call{&text, args}, clock_offset_us());
    });
    return result;
}

Result Engine::run_fenced(std::string_view operation,
                          const TxOptions& options,
                          const Guard& guard,
                          const FencedStatement& statement,
                          std::span<const Param> args) {
    const std::vector<Param> all = guarded_args(guard, args);
    const Rendered& text = rendered(statement.write(), all.size());
    Result result;
    repeat(operation, options, [&](const AttemptOptions& attempt) {
        result = run_guarded(attempt, text, all);
        if (result.changed == 0) {
            throw condition_failed(guard, read_found(guard, statement));
        }
    });
    return result;
}

bool Engine::try_fenced(std::string_view operation,
                        const TxOptions& options,
                        const Guard& guard,
                        const FencedStatement& statement,
                        std::span<const Param> args) {
    const std::vector<Param> all = guarded_args(guard, args);
    const Rendered& text = rendered(statement.write(), all.size());
    bool held = false;
    repeat(operation, options, [&](const AttemptOptions& attempt) {
        held = run_guarded(attempt, text, all).changed == 1;
    });
    return held;
}

Result Engine::run_guarded(const AttemptOptions& attempt,
                           const Rendered& text,
                           std::span<const Param> args) {
    Result result = driver_->run(attempt, Call{&text, args}, clock_offset_us());
    // More than one row: the statement does not name its row by the whole key.
    HOLDFAST_ASSERT(result.changed <= 1);
    return result;
}

void Engine::repeat(std::string_view operation,
                    const TxOptions& options,
                    const std::function<void(const AttemptOptions&)>& attempt) {
    Attempts attempts{.operation = operation,
                      .options = options,
                      .policy = policy_for(operation, options),
                      .metrics = metrics_of(operation)};
    const AttemptOptions attempt_options{.deadline = options.deadline,
                                         .stop = options.stop,
                                         .read_only = options.read_only,
                                         .durability = options.durability,
                                         .urgent = options.urgent};
    struct Active {
        explicit Active(const Gauge& g) : gauge(g) { gauge.add(1); }
        ~Active() { gauge.add(-1); }
        const Gauge& gauge;
    };
    const Active active(attempts.metrics.active);
    const Steady begin = clock_.steady_now();
    const auto observe = [&] {
        attempts.metrics.latency.observe(seconds(clock_.steady_now() - begin));
        attempts.metrics.attempts.observe(attempts.made);
    };
    for (;;) {
        try {
            refuse_if_over(attempts);
            ++attempts.made;
            attempt(attempt_options);
            observe();
            return;
        } catch (const Error& error) {
            try {
                judge(attempts, error);
            } catch (...) {
                observe();
                throw;
            }
        }
    }
}

void Engine::judge(Attempts& attempts, const Error& error) {
    ErrorClass error_class = classify(error);
    const OnDuplicate on_duplicate = attempts.options.on_duplicate;
    if (error_class == ErrorClass::duplicate && on_duplicate == OnDuplicate::retry) {
        error_class = ErrorClass::retryable;
    }
    count_error(attempts, error_class, error);
    if (error_class == ErrorClass::duplicate && on_duplicate == OnDuplicate::retry_once &&
        error.outcome() == Outcome::not_applied && attempts.duplicates++ == 0) {
        --attempts.made;  // The row is committed: there is nothing to wait for, and no conflict.
        return;
    }
    if (error_class != ErrorClass::retryable || error.outcome() == Outcome::unknown) {
        throw;
    }

    attempts.last = std::current_exception();
    conflicts_.record(attempts.operation, clock_.steady_now());
    if (attempts.made > attempts.policy.max_retries) {
        attempts.metrics.exhausted.add();
        throw Exhausted(attempts.operation, attempts.made, attempts.last);
    }
    pause(attempts, error);
}

void Engine::pause(Attempts& attempts, const Error& error) {
    const auto delay = attempts.policy.delay(attempts.made - 1, thread_random());
    count_retry(attempts, error);
    attempts.metrics.backoff.observe(seconds(delay));
    const Steady until = clock_.steady_now() + delay;
    if (until < attempts.options.deadline.when()) {
        clock_.sleep_until(until, attempts.options.stop);
        return;  // The next round sees whether the caller has stopped.
    }
    // A sleep beyond the deadline is useless.
    Error late(Code::deadline,
               Outcome::not_applied,
               fmt::format("{} met a conflict and has no time left to try again; give it a later "
                           "deadline",
                           attempts.operation));
    late.set_cause(attempts.last);
    throw late;
}

void Engine::count_retry(const Attempts& attempts, const Error& error) {
    if (options_.metrics == nullptr) {
        return;
    }
    const auto* database = dynamic_cast<const DatabaseError*>(&error);
    options_.metrics
        ->counter("holdfast_sql_tx_conflicts_total",
                  "Conflicts that led to a retry.",
                  {{"operation", attempts.operation},
                   {"db", options_.name},
                   {"occ_code", database == nullptr ? "" : database->annotation()}})
        .add();
    if (!options_.track_retry_counts) {
        return;
    }
    options_.metrics
        ->counter("holdfast_sql_tx_retries_total",
                  "Retries, by the attempt that had failed.",
                  {{"operation", attempts.operation},
                   {"db", options_.name},
                   {"attempt", std::to_string(attempts.made)}})
        .add();
}

void Engine::refuse_if_over(const Attempts& attempts) const {
    const bool stopped = attempts.options.stop.stop_requested();
    if (!stopped && !attempts.options.deadline.passed(clock_.steady_now())) {
        return;
    }
    Error over(stopped ? Code::cancelled : Code::deadline,
               Outcome::not_applied,
               fmt::format("{} was {} before {}",
                           attempts.operation,
                           stopped ? "cancelled" : "overtaken by its deadline",
                           attempts.made == 0 ? "it began" : "it could be tried again"));
    over.set_cause(attempts.last);
    throw over;
}

void Engine::count_error(const Attempts& attempts, ErrorClass error_class, const Error& error) {
    if (error_class == ErrorClass::condition_failed) {
        attempts.metrics.condition_failed.add();
    }
    if (error_class == ErrorClass::unsupported_feature) {
        attempts.metrics.unsupported.add();
        logger_.error(
            "the database refused a statement as unsupported",
            {{"db", options_.name}, {"operation", attempts.operation}, {"message", error.what()}});
    }
    if (options_.metrics == nullptr) {
        return;
    }
    options_.metrics
        ->counter("holdfast_sql_tx_errors_total",
                  "Failed attempts.",
                  {{"operation", attempts.operation},
                   {"db", options_.name},
                   {"error_class", to_string(error_class)},
                   {"outcome", to_string(error.outcome())}})
        .add();
}

std::string Engine::read_found(const Guard& guard, const FencedStatement& statement) {
    constexpr std::chrono::seconds patience{2};
    const std::vector<Param> key = key_args(guard);
    try {
        const Rendered& text = rendered(statement.found(), key.size());
        const AttemptOptions options{
            .deadline = Deadline::after(patience), .stop = {}, .read_only = true};
        return describe_found(driver_->run(options, Call{&text, key}, clock_offset_us()).rows);
    } catch (const Error&) {
        return "something that could not be read";  // Report the lost guard instead.
    }
}

const Rendered& Engine::rendered(const Statement& statement, std::size_t arguments) {
    const Rendered* text = nullptr;
    // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the address is the key.
    const RenderedKey key{statement.text().data(),
                          statement.names() == nullptr ? 0 : statement.names()->id()};
    {
        const std::shared_lock lock(mutex_);
        const auto found = rendered_.find(key);
        if (found != rendered_.end()) {
            text = found->second.get();
        }
    }
    if (text == nullptr) {
        auto fresh = std::make_unique<Rendered>(
            render(dialect(), statement.name(), statement.text(), statement.names()));
        const std::unique_lock lock(mutex_);
        text = rendered_.try_emplace(key, std::move(fresh)).first->second.get();
    }
    require_arguments(*text, arguments);
    return *text;
}

RetryPolicy Engine::policy_for(std::string_view operation, const TxOptions& options) const {
    const auto override = options_.retry_by_operation.find(operation);
    if (override != options_.retry_by_operation.end()) {
        return override->second.normalised();
    }
    return options.retry.value_or(options_.retry).normalised();
}

OperationMetrics& Engine::metrics_of(std::string_view operation) {
    {
        const std::shared_lock lock(mutex_);
        const auto found = operations_.find(operation);
        if (found != operations_.end()) {
            return *found->second;
        }
    }
    auto fresh = std::make_unique<OperationMetrics>();
    if (Metrics* m = options_.metrics) {
        const Labels labels{{"operation", operation}, {"db", options_.name}};
        static const std::vector<double> attempt_bounds{1, 2, 3, 4, 6, 10};
        fresh->latency = m->histogram("holdfast_sql_tx_latency_seconds",
                                      "Whole transactions, with their retries.",
                                      latency_bounds(),
                                      labels);
        fresh->backoff = m->histogram(
            "holdfast_sql_tx_backoff_seconds", "Pauses before a retry.", latency_bounds(), labels);
        fresh->attempts = m->histogram(
            "holdfast_sql_tx_attempts", "Attempts per transaction.", attempt_bounds, labels);
        fresh->active = m->gauge("holdfast_sql_tx_active", "Transactions in flight.", labels);
        fresh->condition_failed = m->counter(
            "holdfast_sql_tx_condition_failed_total", "Lost guards: answers, not errors.", labels);
        fresh->exhausted = m->counter("holdfast_sql_tx_exhausted_total",
                                      "Transactions given up after the last retry.",
                                      labels);
        fresh->unsupported = m->counter("holdfast_sql_tx_unsupported_total",
                                        "Statements the database does not know; must stay 0.",
                                        labels);
    }
    const std::unique_lock lock(mutex_);
    return *operations_.try_emplace(std::string(operation), std::move(fresh)).first->second;
}

std::vector<Param> key_args(const Guard& guard) {
    std::vector<Param> args;
    args.reserve(guard.key.size());
    for (const Owned& value : guard.key) {
        args.push_back(to_param(value));
    }
    return args;
}

std::vector<Param> guarded_args(const Guard& guard, std::span<const Param> args) {
    std::vector<Param> all = key_args(guard);
    all.reserve(guard.key.size() + guard.tokens.size() + args.size());
    for (const Owned& value : guard.tokens) {
        all.push_back(to_param(value));
    }
    all.insert(all.end(), args.begin(), args.end());
    return all;
}

std::string describe_tokens(const Guard& guard) {
    std::string text;
    for (const Owned& token : guard.tokens) {
        text += (text.empty() ? "" : ", ") + to_text(token);
    }
    return text;
}

std::string describe_found(const Rows& rows) {
    if (rows.empty()) {
        return "no row";
    }
    std::string text;
    const Row row = rows[0];
    for (std::size_t i = 0; i < row.columns(); ++i) {
        text += (text.empty() ? "" : ", ") + to_text(row.cell(i));
    }
    return text;
}

void stop_at_missed_write(const Guard& guard, const FencedStatement& statement) {
    const std::string belief =
        fmt::format("statement '{}' changes the row of {}, which is locked and verified",
                    statement.name(),
                    guard.what);
    assertion_failed(belief.c_str(), std::source_location::current());
}

ConditionFailed condition_failed(const Guard& guard, std::string found) {
    return {guard.what, describe_tokens(guard), std::move(found)};
}

}  // namespace holdfast::sql
