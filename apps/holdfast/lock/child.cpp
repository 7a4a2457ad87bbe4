#include "lock/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) {
        pointers.push_back(text.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> environment_with(const Variables& variables) {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view name =
            std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
        bool ours = false;
        for (const auto& [key, value] : variables) {
            ours = ours || name == key;
        }
        if (!ours) {
            all.emplace_back(*entry);
        }
    }
    for (const auto& [key, value] : variables) {
        all.push_back(key + "=" + value);
    }
    return all;
}

// Gives the terminal to a process group. A process outside the foreground group is stopped when it
// tries that, unless the signal is blocked.
void give_terminal(pid_t group) noexcept {
    sigset_t blocked;
    sigset_t before;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGTTOU);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
    ::tcsetpgrp(STDIN_FILENO, group);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// In the new process, where other threads' locks may be held for ever: nothing but system calls.
[[noreturn]] void become(char** argv, char** env, pid_t parent, bool foreground, int report) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(exit_no_program);  // The parent died before prctl took effect.
    }
    if (foreground) {
        give_terminal(::getpid());
        // A stopped program cannot notice that its lock is lost, so the terminal may not stop it.
        ::signal(SIGTSTP, SIG_IGN);
    }
    ::signal(SIGPIPE, SIG_DFL);
    ::execvpe(argv[0], argv, env);
    const int error = errno;
    (void)!::write(report, &error, sizeof error);
    ::_exit(exit_no_program);
}

// The error of exec; 0 if the program runs.
int read_report(int report) {
    int error = 0;
    ssize_t got = 0;
    do {
        got = ::read(report, &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    return got == sizeof error ? error : 0;
}

}  // namespace

Child::Child(const std::vector<std::string>& command, const Variables& variables) {
    std::vector<std::string> words = command;
    std::vector<std::string> environment = environment_with(variables);
    const std::vector<char*> argv = pointers_to(words);
    const std::vector<char*> env = pointers_to(environment);
    std::array<int, 2> report{};
    const int piped = ::pipe2(report.data(), O_CLOEXEC);
    HOLDFAST_ASSERT(piped == 0);
    foreground_ = ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();

    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
        become(const_cast<char**>(argv.data()),
               const_cast<char**>(env.data()),
               parent,
               foreground_,
               report[1]);
    }
    int error = pid_ < 0 ? errno : 0;
    ::close(report[1]);
    if (pid_ > 0) {
        ::setpgid(pid_, pid_);  // Parent and child both do it; after exec this call fails.
        error = read_report(report[0]);
    }
    ::close(report[0]);
    if (error != 0) {
        if (pid_ > 0) {
            ::waitpid(pid_, nullptr, 0);
        }
        if (foreground_) {
            give_terminal(::getpgrp());
        }
        throw CodedError(error == ENOENT ? exit_no_program : exit_not_runnable,
                         Code::not_found,
                         fmt::format("cannot run '{}': {}", command[0], std::strerror(error)));
    }
    // The C library of Debian 12 declares pidfd_open for C only.
    ended_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    wake_up_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    HOLDFAST_ASSERT(ended_ >= 0 && wake_up_ >= 0);
}

Child::~Child() {
    if (pid_ > 0) {
        signal(SIGKILL);
        (void)exit_code();
    }
    ::close(ended_);
    ::close(wake_up_);
}

void Child::signal(int number) noexcept {
    // Not reaped yet, so the pid cannot belong to another process.
    ::kill(-pid_, number);
    if (number != SIGKILL) {
        ::kill(-pid_, SIGCONT);  // A program that was stopped must see it.
    }
}

bool Child::wait(Steady until) {
    using std::chrono::milliseconds;
    constexpr milliseconds wait_max{std::numeric_limits<int>::max()};
    std::array<pollfd, 2> events{{{ended_, POLLIN, 0}, {wake_up_, POLLIN, 0}}};
    const auto left = until - std::chrono::steady_clock::now();
    const auto wait = std::clamp(std::chrono::ceil<milliseconds>(left), milliseconds{0}, wait_max);
    (void)::poll(events.data(), events.size(), static_cast<int>(wait.count()));
    std::uint64_t count = 0;
    (void)!::read(wake_up_, &count, sizeof count);
    return (events[0].revents & POLLIN) != 0;
}

void Child::wake() noexcept {
    const std::uint64_t one = 1;
    (void)!::write(wake_up_, &one, sizeof one);
}

int Child::exit_code() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (foreground_) {
        give_terminal(::getpgrp());
    }
    return WIFSIGNALED(status) ? exit_signal_base + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace holdfast::app
