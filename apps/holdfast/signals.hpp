// SIGINT and SIGTERM as a stop token.
//
// The first signal asks everything to end in order; the second one ends the process at once.
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace holdfast::app {

struct Context;

// Returns at SIGINT or SIGTERM.
void wait_for_signal(const Context& context);

// One per process, made by main before other threads. The signals are handled, not blocked, so that
// programs started meanwhile have them as usual.
class Signals {
public:
    Signals();
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
    // The first signal that came; 0 if none did, or it was already taken.
    [[nodiscard]] int received() const noexcept { return received_; }
    // The same for a caller that passes it on to a program, whose exit code is then the result.
    [[nodiscard]] int take() noexcept { return received_.exchange(0); }

private:
    std::stop_source stop_;
    std::atomic<int> received_ = 0;
    std::thread listener_;
};

}  // namespace holdfast::app
