// A bounded fan-out: the same operation for each item, at most `limit` at a time.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <deque>
#include <exception>
#include <iterator>
#include <list>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/flow_engine/context.hpp>
#include <holdfast/flow_engine/core.hpp>
#include <holdfast/flow_engine/operation.hpp>
#include <holdfast/flow_engine/task.hpp>

namespace holdfast::flow {

namespace detail {

// Branches that run; awaiting it gives the index of one that has settled, in the order they did.
template <class B>
class Window {
public:
    explicit Window(Context& ctx) : core_(ctx.core()) {}
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    ~Window() {
        for (Entry& entry : entries_) {
            entry.branch.branch_ignore(entry);
        }
    }

    void start(std::size_t index, B branch) {
        Entry& entry = entries_.emplace_back(*this, index, std::move(branch));
        entry.self = std::prev(entries_.end());
        entry.branch.branch_start(*core_.current, entry);
        if (entry.branch.branch_done() && !entry.reported) {
            entry.report();
        }
    }
    [[nodiscard]] std::size_t running() const noexcept { return entries_.size(); }
    // Nothing more is to be started; tasks that run are waited for, because they may clean up.
    [[nodiscard]] bool stopping() const noexcept { return core_.must_cancel(); }
    // Throws Cancelled if a branch ended with it.
    void rethrow_cancelled() const {
        if (cancelled_) {
            std::rethrow_exception(cancelled_);
        }
    }

    // Requires: something runs.
    [[nodiscard]] auto next() { return Next(*this); }

    using Value = BoxedExpected<typename B::value_type>;

private:
    struct Entry final : Listener {
        Entry(Window& owner, std::size_t at, B what)
            : window(owner), index(at), branch(std::move(what)) {}
        std::coroutine_handle<> settled() noexcept override {
            report();
            return window.waiter_ != nullptr ? window.waiter_->wake() : std::coroutine_handle<>{};
        }
        void report() {
            reported = true;
            window.ready_.push_back(this);
        }
        Window& window;
        std::size_t index;
        B branch;
        bool reported = false;
        typename std::list<Entry>::iterator self{};
    };

    class NextAwaiter final : public Suspension {
    public:
        explicit NextAwaiter(Window& window) : window_(window) {}
        [[nodiscard]] bool await_ready() noexcept {
            cancelled_ = window_.stopping() && !window_.tasks_run();
            return cancelled_ || !window_.ready_.empty();
        }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> self) {
            handle_ = self;
            resumed_ = &self.promise();
            window_.waiter_ = this;
            enter(self.promise());
        }
        std::pair<std::size_t, Value> await_resume() {
            leave();
            window_.waiter_ = nullptr;
            if (resumed_ != nullptr) {
                window_.core_.current = resumed_;
            }
            if (cancelled_) {
                throw Cancelled(window_.core_.cancel_reason());
            }
            return window_.take();
        }
        std::coroutine_handle<> wake() noexcept {
            window_.waiter_ = nullptr;
            return handle_;
        }
        std::coroutine_handle<> cancel() noexcept override {
            if (window_.tasks_run()) {
                return {};
            }
            cancelled_ = true;
            return wake();
        }

    private:
        Window& window_;
        std::coroutine_handle<> handle_;
        Frame* resumed_ = nullptr;
        bool cancelled_ = false;
    };

    class Next : public Awaitable {
    public:
        explicit Next(Window& window) : window_(window) {}
        auto operator co_await() const { return NextAwaiter(window_); }

    private:
        Window& window_;
    };

    [[nodiscard]] bool tasks_run() const noexcept {
        return std::ranges::any_of(entries_, [](const Entry& entry) {
            return !entry.branch.branch_done() && entry.branch.branch_cancels_itself();
        });
    }
    std::pair<std::size_t, Value> take() {
        Entry* const entry = ready_.front();
        ready_.pop_front();
        const std::size_t index = entry->index;
        Value value = take_outcome(entry->branch);
        entries_.erase(entry->self);
        return {index, std::move(value)};
    }
    Value take_outcome(B& branch) {
        try {
            return Value(branch.branch_take());
        } catch (const Failure& failure) {
            return Value(failure.info());
        } catch (const Cancelled& stop) {
            cancelled_ = std::current_exception();
            return Value(FailureInfo{.kind = FailureKind::cancelled, .message = stop.reason()});
        }
    }

    Core& core_;
    std::list<Entry> entries_;
    std::deque<Entry*> ready_;
    NextAwaiter* waiter_ = nullptr;
    std::exception_ptr cancelled_;
};

template <class B, class Range, class F>
Task<std::vector<typename Window<B>::Value>> map_each(Context& ctx,
                                                      Range items,
                                                      std::size_t limit,
                                                      F fn) {
    using Item = typename Range::value_type;
    using Value = typename Window<B>::Value;
    const std::vector<Item> all_items(std::make_move_iterator(items.begin()),
                                      std::make_move_iterator(items.end()));
    std::vector<std::optional<Value>> settled(all_items.size());
    Window<B> window(ctx);
    std::size_t next = 0;
    std::size_t done = 0;
    while (done < all_items.size()) {
        while (next < all_items.size() && window.running() < std::max<std::size_t>(limit, 1) &&
               !window.stopping()) {
            window.start(next, fn(ctx, all_items[next]));
            ++next;
        }
        auto ended = co_await window.next();
        settled[ended.first].emplace(std::move(ended.second));
        ++done;
    }
    window.rethrow_cancelled();
    std::vector<Value> results;
    results.reserve(settled.size());
    for (std::optional<Value>& value : settled) {
        results.push_back(std::move(*value));
    }
    co_return results;
}

}  // namespace detail

// Runs fn(ctx, item), an Op or a Task, for each item. The results stand in the order of the items;
// a failure of one does not disturb the others. Items and function are kept while it runs.
template <class Range,
          class F,
          class Item = typename std::remove_cvref_t<Range>::value_type,
          class B = std::invoke_result_t<std::decay_t<F>&, Context&, const Item&>>
Task<std::vector<typename detail::Window<B>::Value>> map(Context& ctx,
                                                         Range&& items,
                                                         std::size_t limit,
                                                         F&& fn) {
    static_assert(detail::safe_in_await<Range&&> && detail::safe_function_in_await<F&&>,
                  "g++ before 13 destroys such a temporary twice inside co_await: give the items "
                  "or the lambda a name in the line before, and pass it without std::move");
    return detail::map_each<B>(ctx,
                               std::remove_cvref_t<Range>(std::forward<Range>(items)),
                               limit,
                               std::decay_t<F>(std::forward<F>(fn)));
}

}  // namespace holdfast::flow
