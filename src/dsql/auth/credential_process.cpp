// A profile may name a command that prints keys.
#include <array>
#include <cerrno>
#include <csignal>

#include "auth/credential_sources.hpp"
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>

namespace holdfast::dsql {
namespace {

constexpr std::size_t output_bytes_max = 1U << 16U;
constexpr std::chrono::milliseconds look_again{50};  // How often the stop token is checked.

[[noreturn]] void fail(std::string_view what) {
    throw Error(
        Code::unavailable,
        Outcome::not_applied,
        fmt::format("the profile's credential_process {}; run it by hand to see why", what));
}

// A shell and all it starts, in a group of their own, with a pipe from their output to us. None of
// them outlives this object.
class Command {
public:
    explicit Command(const std::string& text) {
        std::array<int, 2> ends{};
        if (pipe2(ends.data(), O_CLOEXEC) != 0) {
            fail("has no pipe");
        }
        output_ = ends[0];
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        posix_spawnattr_setpgroup(&attributes, 0);
        std::array<char*, 4> arguments{const_cast<char*>("sh"),
                                       const_cast<char*>("-c"),
                                       const_cast<char*>(text.c_str()),
                                       nullptr};
        const int fault =
            posix_spawn(&pid_, "/bin/sh", &actions, &attributes, arguments.data(), environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        if (fault != 0) {
            close(output_);
            fail("cannot be started");
        }
    }
    ~Command() {
        close(output_);
        if (pid_ > 0) {
            kill(-pid_, SIGKILL);
            (void)wait();
        }
    }
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    [[nodiscard]] int output() const noexcept { return output_; }

    // Its exit status; 0 is success.
    [[nodiscard]] int wait() noexcept {
        int status = 0;
        while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = 0;
        return status;
    }

private:
    int output_ = -1;
    pid_t pid_ = 0;
};

std::string read_all(const Command& command, Deadline deadline, const std::stop_token& stop) {
    std::string text;
    for (;;) {
        if (stop.stop_requested()) {
            throw Error(Code::cancelled, Outcome::not_applied, "the look-up was stopped");
        }
        if (deadline.passed()) {
            fail("did not end in time");
        }
        pollfd watched{.fd = command.output(), .events = POLLIN, .revents = 0};
        const auto nap = std::min<std::chrono::nanoseconds>(deadline.remaining(), look_again);
        const auto nap_ms = std::chrono::ceil<std::chrono::milliseconds>(nap);
        if (poll(&watched, 1, static_cast<int>(nap_ms.count())) <= 0) {
            continue;
        }
        std::array<char, 4096> part{};
        const ssize_t got = read(command.output(), part.data(), part.size());
        if (got == 0) {
            return text;
        }
        if (got > 0) {
            text.append(part.data(), static_cast<std::size_t>(got));
        }
        if (text.size() > output_bytes_max) {
            fail("prints too much");
        }
    }
}

}  // namespace

Credentials run_credential_process(const Search& search, const std::string& command) {
    const Deadline deadline =
        search.deadline.earlier(Deadline::after(search.options.service_timeout));
    Command running(command);
    const std::string text = read_all(running, deadline, search.stop);
    if (running.wait() != 0) {
        fail("failed");
    }
    return credentials_from_json(text, "the profile's credential_process");
}

}  // namespace holdfast::dsql
