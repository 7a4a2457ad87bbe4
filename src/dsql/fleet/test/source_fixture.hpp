// What becomes of the openings of a database, for tests that wait for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <utility>

#include <holdfast/sql/source.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::dsql {

// Safe to share between threads.
class Openings {
public:
    struct Counts {
        int opened = 0;
        int refused = 0;  // By the server, because of its rate limit: SQLSTATE 53400.
        int closed = 0;   // Of those that were opened.
    };

    template <class Change>
    void change(Change&& apply) {
        const std::lock_guard lock(mutex_);
        apply(counts_);
        changed_.notify_all();
    }
    [[nodiscard]] Counts counts() const {
        const std::lock_guard lock(mutex_);
        return counts_;
    }
    // Throws if it has not come about in so long a time that the test has failed.
    template <class Condition>
    void wait(Condition&& condition) const {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, std::chrono::minutes{2}, [&] { return condition(counts_); })) {
            throw std::runtime_error("the openings did not come as they should");
        }
    }

private:
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    Counts counts_;
};

// As another source, and counts. Requires: `openings` outlives it.
class WatchedSource : public sql::ConnectionSource {
public:
    WatchedSource(std::unique_ptr<sql::ConnectionSource> source, Openings& openings)
        : source_(std::move(source)), openings_(openings) {}

    [[nodiscard]] const sql::Dialect& dialect() const noexcept override {
        return source_->dialect();
    }
    [[nodiscard]] sql::ConnectParams prepare(Deadline deadline,
                                             const std::stop_token& stop,
                                             pool::OpenPhases& phases) override {
        return source_->prepare(deadline, stop, phases);
    }
    bool opened(const sql::ConnectParams& params,
                const sql::DatabaseError* failure) noexcept override {
        openings_.change([&](Openings::Counts& counts) {
            counts.opened += failure == nullptr ? 1 : 0;
            counts.refused +=
                failure != nullptr && failure->state() == sql::SqlState{"53400"} ? 1 : 0;
        });
        return source_->opened(params, failure);
    }
    void closed() noexcept override {
        source_->closed();
        openings_.change([](Openings::Counts& counts) { ++counts.closed; });
    }
    [[nodiscard]] pool::Config pool_config(int target) const override {
        return source_->pool_config(target);
    }
    void attach(int target, std::function<void(int)> shed) override {
        source_->attach(target, std::move(shed));
    }
    void detach() noexcept override { source_->detach(); }

private:
    const std::unique_ptr<sql::ConnectionSource> source_;
    Openings& openings_;
};

[[nodiscard]] inline sql::SourceFactory watched(sql::SourceFactory factory, Openings& openings) {
    return [factory = std::move(factory), &openings](const sql::Url& url) {
        return std::make_unique<WatchedSource>(factory(url), openings);
    };
}

}  // namespace holdfast::dsql
