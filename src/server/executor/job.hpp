// A piece of work, run once. Unlike std::function it may own what cannot be copied, such as a
// reply.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace holdfast::server {

template <class... Args>
class Once {
public:
    Once() = default;
    template <std::invocable<Args...> Work>
        requires(!std::same_as<std::remove_cvref_t<Work>, Once>)
    Once(Work&& work)  // NOLINT(google-explicit-constructor): a lambda is passed as it is.
        : work_(std::make_unique<Held<std::remove_cvref_t<Work>>>(std::forward<Work>(work))) {}

    // Requires: it holds work that has not run.
    void operator()(Args... args) && {
        std::exchange(work_, nullptr)->run(std::forward<Args>(args)...);
    }

    explicit operator bool() const noexcept { return work_ != nullptr; }

private:
    struct Any {
        virtual ~Any() = default;
        virtual void run(Args... args) = 0;
    };
    template <class Work>
    struct Held final : Any {
        template <class From>
        explicit Held(From&& from) : work(std::forward<From>(from)) {}
        void run(Args... args) override { work(std::forward<Args>(args)...); }
        Work work;
    };

    std::unique_ptr<Any> work_;
};

using Job = Once<>;

}  // namespace holdfast::server
