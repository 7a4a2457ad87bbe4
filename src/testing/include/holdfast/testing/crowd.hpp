// Many threads that do the same at the same moment.
#pragma once

#include <functional>
#include <future>
#include <thread>
#include <vector>

namespace holdfast::test {

// Every thread runs `work(i)`, and all begin together.
inline void all_at_once(int threads, const std::function<void(int)>& work) {
    std::promise<void> gun;
    const std::shared_future<void> start = gun.get_future().share();
    std::vector<std::jthread> crowd;
    crowd.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
        crowd.emplace_back([&work, start, i] {
            start.wait();
            work(i);
        });
    }
    gun.set_value();
}

}  // namespace holdfast::test
