#include <holdfast/testing/crash.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <exception>
#include <filesystem>
#include <ostream>
#include <string>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>

namespace holdfast::test {

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr std::ptrdiff_t own_threads = 2;  // ThreadSanitizer has one of its own.
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr std::ptrdiff_t own_threads = 2;
#else
constexpr std::ptrdiff_t own_threads = 1;
#endif
#else
constexpr std::ptrdiff_t own_threads = 1;
#endif

[[noreturn]] void fail(const std::string& message) {
    throw Error(Code::internal, Outcome::unknown, message);
}

// A forked copy of a process with threads has their locks and not their threads.
void require_one_thread() {
    const std::filesystem::directory_iterator threads("/proc/self/task");
    if (std::distance(begin(threads), end(threads)) > own_threads) {
        fail(
            "a Victim must be made while the test has no other threads: close its databases first");
    }
}

[[noreturn]] void be_the_victim(const std::function<void(Witness&)>& work, int fd, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        ::_exit(1);
    }  // It died before that line.
    try {
        Witness witness(fd);
        work(witness);
        ::_exit(0);
    } catch (const std::exception& error) {
        fmt::print(stderr, "the victim failed: {}\n", error.what());
    } catch (...) {
        fmt::print(stderr, "the victim failed\n");
    }
    ::_exit(1);
}

}  // namespace

void Witness::acknowledged(std::int64_t id) noexcept {
    // Few enough bytes to be written whole or not at all.
    while (::write(fd_, &id, sizeof id) < 0 && errno == EINTR) {
    }
}

Victim::Victim(const std::function<void(Witness&)>& work) {
    require_one_thread();
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) {
        fail("cannot open a pipe");
    }
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
        ::close(pipe[0]);
        be_the_victim(work, pipe[1], parent);
    }
    ::close(pipe[1]);
    reports_ = pipe[0];
    if (pid_ < 0) {
        fail("cannot fork");
    }
}

Victim::~Victim() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        (void)reap();
    }
    ::close(reports_);
}

void Victim::wait_for(std::size_t count, Deadline deadline) {
    while (acknowledged_.size() < count) {
        if (!listen(deadline)) {
            fail("the victim ended by itself");
        }
    }
}

std::size_t Victim::acknowledged() {
    pollfd readable{reports_, POLLIN, 0};
    while (::poll(&readable, 1, 0) > 0 && listen(Deadline::after(std::chrono::seconds{1}))) {
    }
    return acknowledged_.size();
}

void Victim::freeze() {
    int status = 0;
    ::kill(pid_, SIGSTOP);
    while (::waitpid(pid_, &status, WUNTRACED) < 0 && errno == EINTR) {
    }
    if (!WIFSTOPPED(status)) {
        pid_ = -1;
        fail("the victim ended by itself");
    }
}

void Victim::thaw() {
    ::kill(pid_, SIGCONT);
}

std::vector<std::int64_t> Victim::kill_after(std::size_t count, Deadline deadline) {
    wait_for(count, deadline);
    ::kill(pid_, SIGKILL);
    while (listen(deadline)) {
    }  // What it was told before it died counts.
    (void)reap();
    return acknowledged_;
}

std::vector<std::int64_t> Victim::join(Deadline deadline) {
    while (listen(deadline)) {
    }
    if (const int status = reap(); status != 0) {
        fail(fmt::format("the victim ended with status {:#x}", status));
    }
    return acknowledged_;
}

bool Victim::listen(Deadline deadline) {
    pollfd readable{reports_, POLLIN, 0};
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
    if (::poll(&readable, 1, static_cast<int>(wait.count())) == 0) {
        fail(fmt::format("after {} acknowledgements the victim was silent until the deadline",
                         acknowledged_.size()));
    }
    std::array<std::int64_t, 512> ids{};
    const ssize_t size = ::read(reports_, ids.data(), sizeof ids);
    if (size <= 0) {
        return size < 0 && errno == EINTR;
    }
    const auto count =
        static_cast<std::ptrdiff_t>(size) / static_cast<std::ptrdiff_t>(sizeof ids[0]);
    acknowledged_.insert(acknowledged_.end(), ids.begin(), ids.begin() + count);
    return true;
}

int Victim::reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
}

std::ostream& operator<<(std::ostream& out, const Verdict& verdict) {
    return out << fmt::format("{} lost: {}; {} doubled: {}",
                              verdict.lost.size(),
                              verdict.lost,
                              verdict.doubled.size(),
                              verdict.doubled);
}

Verdict check_statements(std::span<const std::int64_t> acknowledged,
                         std::span<const std::int64_t> found) {
    std::vector<std::int64_t> there(found.begin(), found.end());
    std::sort(there.begin(), there.end());
    Verdict verdict;
    for (const std::int64_t id : acknowledged) {
        if (!std::binary_search(there.begin(), there.end(), id)) {
            verdict.lost.push_back(id);
        }
    }
    for (std::size_t i = 1; i < there.size(); ++i) {
        if (there[i] == there[i - 1]) {
            verdict.doubled.push_back(there[i]);
        }
    }
    return verdict;
}

}  // namespace holdfast::test
