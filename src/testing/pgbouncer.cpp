#include <holdfast/testing/pgbouncer.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <fmt/core.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast::test {
namespace {

constexpr const char* program = "/usr/sbin/pgbouncer";
constexpr std::chrono::seconds patience{30};
constexpr std::chrono::milliseconds look_every{5};

[[nodiscard]] Error not_started(const std::string& why) {
    return {Code::unavailable,
            Outcome::not_applied,
            fmt::format("pgbouncer did not start: {}; install the Debian package pgbouncer", why)};
}

// The socket has PostgreSQL's usual port in its name, so that an address is a folder.
void write_configuration(const std::string& file,
                         const std::string& folder,
                         const PostgresAddress& server,
                         const PgBouncerOptions& options) {
    std::ofstream(file) << fmt::format(
        "[databases]\n"
        "* = host={} user=postgres\n"
        "[pgbouncer]\n"
        "listen_port = 5432\n"
        "unix_socket_dir = {}\n"
        "auth_type = any\n"
        "pool_mode = {}\n"
        "default_pool_size = {}\n"
        "max_client_conn = 500\n"
        "logfile = {}/log\n"
        "{}\n",
        server.socket_folder.string(),
        folder,
        to_string(options.mode),
        options.backends,
        folder,
        options.settings);
}

// pgbouncer does not run as root.
[[nodiscard]] const passwd* other_user() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): called before the test has threads that ask the same.
    const passwd* const user = ::geteuid() == 0 ? ::getpwnam("postgres") : nullptr;
    return user;
}

[[noreturn]] void become(const passwd* user, const std::string& file, pid_t parent) {
    const bool changed =
        user == nullptr || (::setgid(user->pw_gid) == 0 && ::setuid(user->pw_uid) == 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // After the change of user, which clears it.
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        ::dup2(nothing, stream);
    }
    if (changed && ::getppid() == parent) {
        ::execl(program, program, file.c_str(), nullptr);
    }
    ::_exit(127);
}

}  // namespace

std::string_view to_string(PoolMode mode) noexcept {
    switch (mode) {
        case PoolMode::session:
            return "session";
        case PoolMode::transaction:
            return "transaction";
        case PoolMode::statement:
            return "statement";
    }
    return "";
}

PgBouncer::PgBouncer(const PostgresAddress& server, const PgBouncerOptions& options)
    : address_{folder_.path()} {
    const std::string file = folder_ / "pgbouncer.ini";
    write_configuration(file, folder_.path(), server, options);
    const passwd* const user = other_user();
    if (user != nullptr) {
        const int owned = ::chown(folder_.path().c_str(), user->pw_uid, user->pw_gid);
        HOLDFAST_ASSERT(owned == 0);
    }
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    HOLDFAST_ASSERT(pid_ >= 0);
    if (pid_ == 0) {
        become(user, file, parent);
    }
    // PQping would count as a client in a mode that refuses it; any answer is an answer.
    const Deadline deadline = Deadline::after(patience);
    while (PQping(address_.conninfo("pgbouncer").c_str()) == PQPING_NO_RESPONSE) {
        if (::waitpid(pid_, nullptr, WNOHANG) != 0) {
            pid_ = -1;
            throw not_started(log());
        }
        if (deadline.passed()) {
            throw not_started(log());
        }
        system_clock().sleep_until(std::chrono::steady_clock::now() + look_every, {});
    }
}

PgBouncer::~PgBouncer() {
    if (pid_ > 0) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
}

std::string PgBouncer::log() const {
    std::ifstream file(folder_ / "log");
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace holdfast::test
