// Undoing what was done, in the opposite order.
//
//   flow::Saga undo{ctx};
//   Hold hold = co_await ctx.activity<&reserve_stock>(basket);
//   undo.push<&release_stock>(hold);
//   ...
//   if (failed) { co_await undo.unwind(); std::rethrow_exception(failed); }
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <holdfast/flow_engine/context.hpp>
#include <holdfast/flow_engine/operation.hpp>
#include <holdfast/flow_engine/task.hpp>

namespace holdfast::flow {

class Saga {
public:
    // Each undo is tried as often as `retry` says.
    explicit Saga(Context& ctx, RetryPolicy retry = {.attempts = 10}) : ctx_(ctx), retry_(retry) {
        detail::check_retry(retry);
    }
    Saga(const Saga&) = delete;
    Saga& operator=(const Saga&) = delete;

    template <auto Undo, class... A>
    void push(A... args) {
        using R = typename detail::ActivityTraits<decltype(Undo)>::result;
        undo_.push_back([&ctx = ctx_, retry = retry_, args...]() -> Op<Payload> {
            Op<R> operation = ctx.template activity<Undo>(args...);
            return Op<Payload>(std::move(operation).retry(retry).release());
        });
    }
    // Runs what was pushed, newest first, whatever happens to the others; cancellation waits until
    // it is done. Throws a Failure of type "CompensationFailed" if some could not be undone.
    [[nodiscard]] Task<void> unwind() { return run(ctx_, std::exchange(undo_, {})); }
    // All went well: forget what was pushed.
    void dismiss() noexcept { undo_.clear(); }

private:
    using Undos = std::vector<std::function<Op<Payload>()>>;
    static Task<void> run(Context& ctx, Undos undo);

    Context& ctx_;
    RetryPolicy retry_;
    Undos undo_;
};

}  // namespace holdfast::flow
