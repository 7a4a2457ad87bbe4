// One workflow from its start to its end, in one expression.
//
//   EXPECT_EQ(flow::test::run<&review>(loan)
//                 .on<&nudge>([&](std::string officer) { nudged.push_back(officer); })
//                 .after(30h)
//                 .signal(decisions, "granted")
//                 .result(),
//             "granted");
//
// It is a World with one instance. The steps happen in the order in which they are written, from
// the start on; then the clock moves by itself from one due item to the next until the workflow has
// ended. A wait that never ends is Unexpected; the text says what the workflow waits for.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <holdfast/flow_testing/world.hpp>

namespace holdfast::flow::test {

// The id of the instance.
inline constexpr std::string_view run_id = "run";

template <auto W>
class [[nodiscard]] Run {
public:
    using Result = typename flow::detail::WorkflowTraits<decltype(W)>::result;

    template <class... A>
    explicit Run(std::in_place_t, A&&... args) : world_(std::make_unique<World>()) {
        world_->start<W>(std::string(run_id), std::forward<A>(args)...);
    }

    // --- the code
    // A function that stands for the activity, as World::stub takes it.
    template <auto F, class Fn>
    Run on(Fn stub) && {
        world_->stub<F>(std::move(stub));
        return std::move(*this);
    }
    // The activity itself.
    template <auto F>
    Run on() && {
        world_->activity<F>();
        return std::move(*this);
    }
    // The code of a child.
    template <auto Child>
    Run with(std::string_view version = "1.0.0") && {
        world_->workflow<Child>(version);
        return std::move(*this);
    }

    // --- what happens
    // Moves the workflow's clock before the next step.
    Run after(milliseconds time) && {
        return std::move(*this).then([time](World& world) { world.advance(time); });
    }
    template <class T>
    Run signal(const Channel<T>& channel, std::type_identity_t<T> value) && {
        return std::move(*this).then([channel, value = std::move(value)](World& world) {
            deliver(world.signal(run_id, channel, value), channel.name());
        });
    }
    template <class T>
    Run signal(const Signal<T>& signal, std::type_identity_t<T> value) && {
        return std::move(*this).then([signal, value = std::move(value)](World& world) {
            deliver(world.signal(run_id, signal, value), signal.name());
        });
    }
    Run cancel(std::string reason) && {
        return std::move(*this).then(
            [reason = std::move(reason)](World& world) { world.cancel(run_id, reason); });
    }
    // Any other step on the world, also a check in the middle.
    Run then(std::function<void(World&)> step) && {
        steps_.push_back(std::move(step));
        return std::move(*this);
    }

    // --- the end
    // Each runs the steps that have not run yet.
    [[nodiscard]] Expected<Result> outcome() {
        play();
        return world_->result<W>(run_id);
    }
    // Throws the Failure if the workflow failed or was cancelled.
    Result result() { return outcome().value(); }
    [[nodiscard]] World& world() noexcept { return *world_; }

private:
    // A message that is not delivered is a mistake of the test.
    static void deliver(Delivery delivery, std::string_view name) {
        if (delivery != Delivery::delivered) {
            throw Unexpected("the workflow has ended before '" + std::string(name) + "' was sent");
        }
    }
    void play() {
        for (const std::function<void(World&)>& step : std::exchange(steps_, {})) {
            step(*world_);
        }
        world_->run_to_end(run_id);
    }

    std::unique_ptr<World> world_;
    std::vector<std::function<void(World&)>> steps_;
};

// The arguments are those of the workflow.
template <auto W, class... A>
[[nodiscard]] Run<W> run(A&&... args) {
    return Run<W>(std::in_place, std::forward<A>(args)...);
}

}  // namespace holdfast::flow::test
