#include <holdfast/base/subprocess.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>

extern char** environ;

namespace holdfast {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> list;
    list.reserve(texts.size() + 1);
    for (std::string& text : texts) {
        list.push_back(text.data());
    }
    list.push_back(nullptr);
    return list;
}

}  // namespace

Subprocess::Subprocess(SubprocessOptions options) {
    for (char** inherited = environ; *inherited != nullptr; ++inherited) {
        options.environment.emplace_back(*inherited);  // Of two with one name the first one counts.
    }
    std::array<int, 2> ends{};
    int problem = ::pipe2(ends.data(), O_CLOEXEC) == 0 ? 0 : errno;
    if (problem == 0) {
        output_ = ends[0];
        posix_spawn_file_actions_t actions;
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        if (options.with_errors) {
            ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
        }
        problem = ::posix_spawnp(&pid_,
                                 options.arguments[0].c_str(),
                                 &actions,
                                 nullptr,
                                 pointers(options.arguments).data(),
                                 pointers(options.environment).data());
        ::posix_spawn_file_actions_destroy(&actions);
        ::close(ends[1]);
    }
    if (problem != 0) {
        ::close(output_);
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    fmt::format("cannot run {} ({}); install it or correct the PATH",
                                options.arguments[0],
                                std::generic_category().message(problem)));
    }
}

Subprocess::~Subprocess() {
    ::close(output_);
    if (!waited_) {
        kill();
        (void)wait();
    }
}

std::optional<std::string> Subprocess::read(Deadline deadline) {
    pollfd ready{.fd = output_, .events = POLLIN, .revents = 0};
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
        const int found = ::poll(&ready, 1, static_cast<int>(left.count()));
        if (found > 0) {
            break;
        }
        if (found == 0 || errno != EINTR) {
            return std::nullopt;
        }
    }
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(output_, buffer.data(), buffer.size());
    return std::string(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
}

void Subprocess::kill() const noexcept {
    ::kill(pid_, SIGKILL);
}

bool Subprocess::wait() noexcept {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    waited_ = true;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace holdfast
