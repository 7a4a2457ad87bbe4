#include "signals.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "command.hpp"
#include <fcntl.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/clock.hpp>
#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

constexpr std::array handled{SIGINT, SIGTERM};

// A signal handler can only use globals.
int wake_up = -1;
volatile std::sig_atomic_t signals_seen = 0;

void on_signal(int signal) {
    signals_seen = signals_seen + 1;
    if (signals_seen > 1) {
        ::_exit(exit_signal_base + signal);
    }
    const int saved = errno;
    const auto byte = static_cast<unsigned char>(signal);
    (void)!::write(wake_up, &byte, 1);
    errno = saved;
}

std::array<int, 2> make_pipe() {
    std::array<int, 2> ends{};
    const int status = ::pipe2(ends.data(), O_CLOEXEC);
    HOLDFAST_ASSERT(status == 0);
    return ends;
}

void set_handlers(void (*handler)(int)) {
    struct sigaction action{};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    for (const int signal : handled) {
        ::sigaction(signal, &action, nullptr);
    }
}

}  // namespace

Signals::Signals() {
    const std::array<int, 2> ends = make_pipe();
    wake_up = ends[1];
    listener_ = std::thread([this, end = ends[0]] {
        unsigned char signal = 0;
        while (::read(end, &signal, 1) == 1 && signal != 0) {
            received_ = signal;
            stop_.request_stop();
        }
        ::close(end);
    });
    set_handlers(&on_signal);
}

Signals::~Signals() {
    set_handlers(SIG_DFL);
    const unsigned char end = 0;
    (void)!::write(wake_up, &end, 1);
    listener_.join();
    ::close(wake_up);
}

void wait_for_signal(const Context& context) {
    constexpr std::chrono::hours a_while{1};
    while (system_clock().sleep_until(std::chrono::steady_clock::now() + a_while, context.stop)) {
    }
}

}  // namespace holdfast::app
