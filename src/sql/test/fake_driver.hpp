// A driver that answers by a script: for tests of what stands above a driver.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "driver.hpp"

namespace holdfast::sql {

// Where a scripted failure strikes.
enum class Strikes : std::uint8_t { at_begin, at_statement, at_commit };

struct ScriptedFailure {
    Strikes where;
    std::exception_ptr error;
};

// Attempt n ends with the n-th failure of the script; beyond it everything succeeds.
class ScriptedDriver final : public Driver {
public:
    explicit ScriptedDriver(Product product = Product::postgres) : product_(product) {}

    template <class E>
    ScriptedDriver& fail(Strikes where, E error) {
        script_.push_back({where, std::make_exception_ptr(std::move(error))});
        return *this;
    }

    [[nodiscard]] const Dialect& dialect() const noexcept override { return dialect_of(product_); }

    void attempt(const AttemptOptions&, const std::function<void(Session&)>& body) override {
        const std::exception_ptr error = next();
        const Strikes where = where_;
        if (error && where == Strikes::at_begin) {
            std::rethrow_exception(error);
        }
        ++begun;
        ScriptedSession session(error && where == Strikes::at_statement ? error : nullptr);
        body(session);
        if (error && where == Strikes::at_commit) {
            std::rethrow_exception(error);
        }
        ++committed;
    }

    Result run(const AttemptOptions&, const Call&, std::int64_t) override {
        if (const std::exception_ptr error = next()) {
            std::rethrow_exception(error);
        }
        ++committed;
        return {.rows = {}, .changed = 1};
    }

    [[nodiscard]] std::unique_ptr<Subscription> subscribe(
        std::string_view, std::function<void(std::string_view)>) override {
        return nullptr;
    }
    [[nodiscard]] PoolStats pool_stats() const override { return {}; }
    [[nodiscard]] DriverStats driver_stats() const override { return {}; }
    void stop(Deadline) override {}

    int attempts = 0;
    int begun = 0;
    int committed = 0;

private:
    class ScriptedSession final : public Session {
    public:
        explicit ScriptedSession(std::exception_ptr error) : error_(std::move(error)) {}
        std::size_t send(const Call&, bool) override {
            if (error_) {
                std::rethrow_exception(error_);
            }
            return 1;
        }
        Result take(std::size_t) override { return {.rows = {}, .changed = 1}; }
        void run_script(const std::string&) override {}
        void notify(std::string_view, std::string_view) override {}
        std::int64_t clock_parameter(ClockReading, std::int64_t offset_us) override {
            return offset_us;
        }
        [[nodiscard]] bool replies_cost() const noexcept override { return false; }
        void check_at_commit(std::size_t) override {}

    private:
        std::exception_ptr error_;
    };

    std::exception_ptr next() {
        const std::lock_guard lock(mutex_);
        ++attempts;
        if (script_.empty()) {
            return nullptr;
        }
        const ScriptedFailure failure = script_.front();
        script_.pop_front();
        where_ = failure.where;
        return failure.error;
    }

    Product product_;
    std::mutex mutex_;
    std::deque<ScriptedFailure> script_;
    Strikes where_ = Strikes::at_begin;
};

}  // namespace holdfast::sql
