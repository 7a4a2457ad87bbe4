#include "local/watchdog.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>

namespace holdfast::dsql {

namespace fs = std::filesystem;

namespace {

constexpr char command_start = 's';
constexpr char command_stop = 't';
constexpr char command_crash = 'k';
constexpr char command_alive = 'a';
constexpr char command_end = 'e';

[[noreturn]] void refuse(const std::string& message) {
    throw Error(Code::unavailable, Outcome::not_applied, message);
}

struct Account {
    uid_t uid;
    gid_t gid;
};

// PostgreSQL refuses to run as root.
[[nodiscard]] std::optional<Account> unprivileged_account() {
    if (::geteuid() != 0) {
        return std::nullopt;
    }
    for (const char* name : {"postgres", "nobody"}) {
        if (const passwd* found = ::getpwnam(name); found != nullptr) {
            return Account{found->pw_uid, found->pw_gid};
        }
    }
    refuse("PostgreSQL does not run as root; create a user postgres for it");
}

// A program and its arguments, laid out before the fork: the child must not allocate, because
// another thread may have held the allocator's lock.
class Command {
public:
    explicit Command(std::vector<std::string> words) : words_(std::move(words)) {
        for (std::string& word : words_) {
            argv_.push_back(word.data());
        }
        argv_.push_back(nullptr);
    }
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;

    [[noreturn]] void become() const {
        ::execv(argv_[0], argv_.data());
        ::_exit(127);
    }

private:
    std::vector<std::string> words_;
    std::vector<char*> argv_;
};

[[nodiscard]] std::vector<std::string> server_words(const ServerPlan& plan) {
    std::vector<std::string> words{
        plan.programs / "postgres", "-D", plan.data, "-k", plan.folder, "-c", "listen_addresses="};
    for (const auto& [name, value] : plan.settings) {
        words.emplace_back("-c");
        words.push_back(fmt::format("{}={}", name, value));
    }
    return words;
}

[[nodiscard]] std::vector<std::string> initdb_words(const ServerPlan& plan) {
    std::vector<std::string> words{plan.programs / "initdb",
                                   "--auth=trust",
                                   "--username=postgres",
                                   "--encoding=UTF8",
                                   "--locale=C.UTF-8",
                                   "-D",
                                   plan.data};
    if (!plan.durable) {
        words.emplace_back("--no-sync");
    }
    return words;
}

// glibc's own declaration of pidfd_open forgets C linkage.
[[nodiscard]] int open_pid(pid_t pid) noexcept {
    return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

// The watchdog process. All but the constructor runs after the fork: system calls only, no
// allocation, no exceptions.
class Kennel {
public:
    explicit Kennel(const ServerPlan& plan)
        : lifetime_(plan.lifetime),
          owner_(plan.owner),
          account_(unprivileged_account()),
          log_(plan.folder / "log"),
          version_file_(plan.data / "PG_VERSION"),
          initdb_(initdb_words(plan)),
          postgres_(server_words(plan)),
          remove_({"/bin/rm", "-rf", plan.folder}) {
        std::error_code failure;
        fs::create_directories(plan.data, failure);
        if (failure) {
            refuse(fmt::format("cannot make {}: {}", plan.data.string(), failure.message()));
        }
        for (const fs::path& folder : {plan.folder, plan.data}) {
            if (account_ && ::chown(folder.c_str(), account_->uid, account_->gid) != 0) {
                refuse(fmt::format("cannot hand {} to PostgreSQL's user", folder.string()));
            }
        }
    }

    [[noreturn]] void watch(int control) {
        control_ = control;
        settle_in();
        const int owner = open_pid(owner_);
        while (owner >= 0) {
            std::array<pollfd, 3> fds{
                {{owner, POLLIN, 0},
                 {control_, POLLIN, 0},
                 {lifetime_ == Lifetime::server ? server_fd_ : -1, POLLIN, 0}}};
            if (::poll(fds.data(), fds.size(), -1) < 0) {
                if (errno == EINTR) {
                    continue;
                }
                break;
            }
            if (fds[0].revents != 0 || fds[2].revents != 0) {
                break;
            }
            if (fds[1].revents != 0 && !obey()) {
                if (lifetime_ == Lifetime::handle || server_ <= 0) {
                    break;
                }
                ::close(control_);
                control_ = -1;
            }
        }
        end();
        remove_.become();
    }

private:
    // A session of its own, so that Ctrl-C reaches the owner and not the server. Closes all
    // descriptors of the owner: a reader that waits for the end of a pipe must not wait for us.
    void settle_in() {
        ::setsid();
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (account_ && (::setgroups(0, nullptr) != 0 || ::setgid(account_->gid) != 0 ||
                         ::setuid(account_->uid) != 0)) {
            ::_exit(126);
        }
        const int nothing = ::open("/dev/null", O_RDWR);
        const int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        ::dup2(nothing, STDIN_FILENO);
        ::dup2(log, STDOUT_FILENO);
        ::dup2(log, STDERR_FILENO);
        constexpr int control_at = STDERR_FILENO + 1;
        ::dup2(control_, control_at);
        ::fcntl(control_at, F_SETFD, FD_CLOEXEC);
        control_ = control_at;
        ::close_range(control_at + 1, ~0U, 0);
        if (::chdir("/") != 0) {
            ::_exit(126);
        }
    }

    // False when no more commands come.
    bool obey() {
        char command = 0;
        if (::recv(control_, &command, 1, 0) != 1 || command == command_end) {
            return false;
        }
        switch (command) {
            case command_start:
                start();
                break;
            case command_stop:
                stop();
                break;
            case command_crash:
                crash();
                break;
            default:
                break;
        }
        reap();
        const char lives = server_ > 0 ? 1 : 0;
        return ::send(control_, &lives, 1, MSG_NOSIGNAL) == 1;
    }

    void start() {
        if (server_ > 0) {
            return;
        }
        if (::access(version_file_.c_str(), F_OK) != 0) {
            const pid_t initdb = launch(initdb_);
            int status = 0;
            ::waitpid(initdb, &status, 0);
            if (status != 0) {
                return;
            }
        }
        server_ = launch(postgres_);
        server_fd_ = open_pid(server_);
    }

    void stop() {
        if (server_ <= 0) {
            return;
        }
        ::kill(server_, SIGINT);
        ::waitpid(server_, nullptr, 0);
        forget_server();
    }

    // At once, but so that the server frees its shared memory, which nothing else would.
    void end() {
        if (server_ <= 0) {
            return;
        }
        ::kill(server_, SIGQUIT);
        constexpr int patience_ms = 10'000;
        pollfd gone{server_fd_, POLLIN, 0};
        while (::poll(&gone, 1, patience_ms) < 0 && errno == EINTR) {
        }
        crash();
    }

    // The server's processes have sessions of their own, so no signal reaches them together. Once
    // their parent is dead they are our children, and no new ones can start.
    void crash() {
        if (server_ <= 0) {
            return;
        }
        ::kill(server_, SIGKILL);
        ::waitpid(server_, nullptr, 0);
        forget_server();
        std::array<char, 16384> text;
        const int file = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
        const ssize_t size = ::read(file, text.data(), text.size());
        ::close(file);
        pid_t child = 0;
        for (ssize_t i = 0; i < size; ++i) {
            const char letter = text[static_cast<std::size_t>(i)];
            if (letter >= '0' && letter <= '9') {
                child = child * 10 + (letter - '0');
            } else if (child > 0) {
                ::kill(child, SIGKILL);
                child = 0;
            }
        }
        while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
        }
    }

    void reap() {
        if (server_ > 0 && ::waitpid(server_, nullptr, WNOHANG) == server_) {
            forget_server();
        }
    }

    void forget_server() {
        ::close(server_fd_);
        server_fd_ = -1;
        server_ = -1;
    }

    static pid_t launch(const Command& command) {
        const pid_t child = ::fork();
        if (child == 0) {
            command.become();
        }
        return child;
    }

    Lifetime lifetime_;
    pid_t owner_;
    int control_ = -1;
    std::optional<Account> account_;
    std::string log_;
    std::string version_file_;
    Command initdb_;
    Command postgres_;
    Command remove_;
    pid_t server_ = -1;
    int server_fd_ = -1;
};

}  // namespace

fs::path newest_postgres() {
    const fs::path versions = "/usr/lib/postgresql";
    fs::path newest;
    int newest_version = 0;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(versions, missing)) {
        const std::string name = entry.path().filename().string();
        int version = 0;
        std::from_chars(name.data(), name.data() + name.size(), version);
        if (version > newest_version && fs::exists(entry.path() / "bin" / "postgres")) {
            newest_version = version;
            newest = entry.path() / "bin";
        }
    }
    if (newest.empty()) {
        refuse("there is no PostgreSQL here; install the package postgresql-15");
    }
    return newest;
}

Watchdog::Watchdog(const ServerPlan& plan) : lifetime_(plan.lifetime) {
    Kennel kennel(plan);
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        refuse("cannot open a socket pair");
    }
    control_ = UniqueFd(ends[0]);
    const UniqueFd theirs(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
        kennel.watch(theirs.get());
    }
    if (pid_ < 0) {
        refuse("cannot start another process");
    }
}

Watchdog::~Watchdog() {
    if (lifetime_ == Lifetime::server) {
        return;
    }
    // Sent explicitly: a child that was forked meanwhile may keep the socket open.
    ::send(control_.get(), &command_end, 1, MSG_NOSIGNAL);
    ::waitpid(pid_, nullptr, 0);
}

bool Watchdog::ask(char command) {
    char lives = 0;
    if (::send(control_.get(), &command, 1, MSG_NOSIGNAL) != 1 ||
        ::recv(control_.get(), &lives, 1, 0) != 1) {
        refuse("the watchdog of the private PostgreSQL is gone");
    }
    return lives != 0;
}

bool Watchdog::start() {
    return ask(command_start);
}
void Watchdog::stop() {
    (void)ask(command_stop);
}
void Watchdog::crash() {
    (void)ask(command_crash);
}
bool Watchdog::server_lives() {
    return ask(command_alive);
}

}  // namespace holdfast::dsql
