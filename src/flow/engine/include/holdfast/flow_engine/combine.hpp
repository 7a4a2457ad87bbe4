// Several operations at once.
//
//   auto [stock, price] = co_await flow::all(ctx.activity<&reserve>(a), ctx.activity<&quote>(a));
//   auto first = co_await flow::any(ctx.receive(decisions), ctx.sleep(72h));
//
// A branch is an Op, a Handle's ref() or a Task. Branches are scheduled in the order of the
// parameters, and what settled first in the history decides, never the order of the branches.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <deque>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <holdfast/flow_engine/core.hpp>
#include <holdfast/flow_engine/operation.hpp>
#include <holdfast/flow_engine/task.hpp>

namespace holdfast::flow {

namespace detail {

template <class B>
using BranchValue = Boxed<typename B::value_type>;

// The first of several errors, by when it happened.
class FirstError {
public:
    // Runs `take`, which may throw what `branch` ended with.
    template <class B, class F>
    void guard(B& branch, F&& take) {
        try {
            take();
        } catch (...) {
            const SettledAt when = branch.branch_settled();
            if (!error_ || when < when_) {
                when_ = when;
                error_ = std::current_exception();
            }
        }
    }
    void rethrow() const {
        if (error_) {
            std::rethrow_exception(error_);
        }
    }

private:
    SettledAt when_{};
    std::exception_ptr error_;
};

// Branches with types of their own.
template <class... B>
class TupleBranches {
public:
    explicit TupleBranches(B&&... branches) : branches_(std::move(branches)...) {}

    // f(branch, index), in order.
    template <class F>
    void each(F&& f) {
        std::apply(
            [&](auto&... branch) {
                std::size_t i = 0;
                (f(branch, i++), ...);
            },
            branches_);
    }
    [[nodiscard]] std::tuple<BranchValue<B>...> take_all() {
        return take_all(std::index_sequence_for<B...>{});
    }
    [[nodiscard]] std::variant<BranchValue<B>...> take_one(std::size_t winner) {
        return take_one(winner, std::index_sequence_for<B...>{});
    }

private:
    using Any = std::variant<BranchValue<B>...>;

    template <std::size_t... I>
    std::tuple<BranchValue<B>...> take_all(std::index_sequence<I...>) {
        std::tuple<std::optional<BranchValue<B>>...> values;
        FirstError error;
        (error.guard(std::get<I>(branches_),
                     [&] { std::get<I>(values).emplace(std::get<I>(branches_).branch_take()); }),
         ...);
        error.rethrow();
        // NOLINTNEXTLINE(bugprone-unchecked-optional-access): without an error each has a value.
        return std::tuple<BranchValue<B>...>{std::move(*std::get<I>(values))...};
    }
    template <std::size_t... I>
    Any take_one(std::size_t winner, std::index_sequence<I...>) {
        std::optional<Any> value;
        ((winner == I
              ? (void)value.emplace(std::in_place_index<I>, std::get<I>(branches_).branch_take())
              : void()),
         ...);
        return std::move(*value);  // NOLINT(bugprone-unchecked-optional-access): one has won.
    }

    std::tuple<B...> branches_;
};

// Any number of branches of one type.
template <class B>
class VectorBranches {
public:
    explicit VectorBranches(std::vector<B>&& branches) : branches_(std::move(branches)) {}

    template <class F>
    void each(F&& f) {
        for (std::size_t i = 0; i < branches_.size(); ++i) {
            f(branches_[i], i);
        }
    }
    [[nodiscard]] std::vector<BranchValue<B>> take_all() {
        std::vector<BranchValue<B>> values;
        values.reserve(branches_.size());
        FirstError error;
        for (B& branch : branches_) {
            error.guard(branch, [&] { values.push_back(branch.branch_take()); });
        }
        error.rethrow();
        return values;
    }
    [[nodiscard]] std::pair<std::size_t, BranchValue<B>> take_one(std::size_t winner) {
        return {winner, branches_[winner].branch_take()};
    }

private:
    std::vector<B> branches_;
};

// Waits until enough branches have settled.
template <class Branches>
class Gathering : public Suspension, public Listener {
public:
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> self) {
        Frame& frame = self.promise();
        frame_ = &frame;
        cancelled_ = frame.core->must_cancel();
        if (cancelled_) {
            return false;
        }
        branches_.each([&](auto& branch, std::size_t) { branch.branch_start(frame, *this); });
        wanted_ = still_wanted();
        if (wanted_ == 0) {
            return false;
        }
        handle_ = self;
        enter(frame);
        armed_ = true;
        return true;
    }

    std::coroutine_handle<> settled() noexcept override {
        if (!armed_ || --wanted_ > 0) {
            return {};
        }
        armed_ = false;
        return handle_;
    }
    // Operations are given up; tasks have awaits of their own, which are cancelled one by one, and
    // are waited for: they may have something to clean up.
    std::coroutine_handle<> cancel() noexcept override {
        std::size_t tasks = 0;
        branches_.each([&](auto& branch, std::size_t) {
            if (branch.branch_done()) {
                return;
            }
            if (branch.branch_cancels_itself()) {
                ++tasks;
            } else {
                cancelled_ = true;
                branch.branch_ignore(*this);
                branch.branch_drop();
            }
        });
        if (tasks > 0) {
            wanted_ = tasks;
            return {};
        }
        armed_ = false;
        return handle_;
    }

protected:
    explicit Gathering(Branches&& branches) : branches_(std::move(branches)) {}
    ~Gathering() override {
        branches_.each([&](auto& branch, std::size_t) { branch.branch_ignore(*this); });
    }
    // How many branches must still settle, once all have been started.
    [[nodiscard]] virtual std::size_t still_wanted() noexcept = 0;

    // Call first in await_resume.
    void resumed() {
        this->leave();
        frame_->core->current = frame_;
        if (cancelled_) {
            throw Cancelled(frame_->core->cancel_reason());
        }
    }

    Branches branches_;

private:
    Frame* frame_ = nullptr;
    std::coroutine_handle<> handle_;
    std::size_t wanted_ = 0;
    bool armed_ = false;
    bool cancelled_ = false;
};

template <class Branches>
class AllAwaiter final : public Gathering<Branches> {
public:
    explicit AllAwaiter(Branches&& branches) : Gathering<Branches>(std::move(branches)) {}
    auto await_resume() {
        this->resumed();
        return this->branches_.take_all();
    }

private:
    std::size_t still_wanted() noexcept override {
        std::size_t open = 0;
        this->branches_.each(
            [&](auto& branch, std::size_t) { open += branch.branch_done() ? 0 : 1; });
        return open;
    }
};

template <class Branches>
class AnyAwaiter final : public Gathering<Branches> {
public:
    explicit AnyAwaiter(Branches&& branches) : Gathering<Branches>(std::move(branches)) {}
    auto await_resume() {
        this->resumed();
        const std::size_t winner = earliest();
        this->branches_.each([&](auto& branch, std::size_t i) {
            if (i != winner) {
                branch.branch_drop();
            }
        });
        return this->branches_.take_one(winner);
    }

private:
    std::size_t still_wanted() noexcept override {
        bool done = false;
        this->branches_.each(
            [&](auto& branch, std::size_t) { done = done || branch.branch_done(); });
        return done ? 0 : 1;
    }
    std::size_t earliest() {
        std::size_t winner = 0;
        std::optional<SettledAt> when;
        this->branches_.each([&](auto& branch, std::size_t i) {
            if (branch.branch_done() && (!when || branch.branch_settled() < *when)) {
                winner = i;
                when = branch.branch_settled();
            }
        });
        return winner;
    }
};

// What all() and any() return: branches that wait to be awaited. The awaiter is made in place by
// co_await, because it must not move once branches know it.
template <template <class> class Awaiter, class Branches>
class [[nodiscard]] Combined : public Awaitable {
public:
    explicit Combined(Branches&& branches) : branches_(std::move(branches)) {}
    auto operator co_await() { return Awaiter<Branches>(std::move(branches_)); }

private:
    Branches branches_;
};

template <class B>
concept Branch = requires(B& branch, Frame& frame, Listener& listener) {
    branch.branch_start(frame, listener);
    branch.branch_drop();
};

}  // namespace detail

// All results, in the order of the parameters. Waits for every branch, then throws the error that
// happened first, if there is one.
template <detail::Branch... B>
auto all(B... branches) {
    using Branches = detail::TupleBranches<B...>;
    return detail::Combined<detail::AllAwaiter, Branches>(Branches(std::move(branches)...));
}
template <detail::Branch B>
auto all(std::vector<B> branches) {
    using Branches = detail::VectorBranches<B>;
    return detail::Combined<detail::AllAwaiter, Branches>(Branches(std::move(branches)));
}

// The result (or the error) of the branch that settles first; the others are cancelled.
template <detail::Branch... B>
    requires(sizeof...(B) > 0)
auto any(B... branches) {
    using Branches = detail::TupleBranches<B...>;
    return detail::Combined<detail::AnyAwaiter, Branches>(Branches(std::move(branches)...));
}
// Requires: not empty, else a Failure. Gives the index of the branch too.
template <detail::Branch B>
auto any(std::vector<B> branches) {
    if (branches.empty()) {
        throw Failure("InvalidOperation", "any() of no branches would never end");
    }
    using Branches = detail::VectorBranches<B>;
    return detail::Combined<detail::AnyAwaiter, Branches>(Branches(std::move(branches)));
}

}  // namespace holdfast::flow
