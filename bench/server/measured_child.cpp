#include "measured_child.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <sstream>
#include <utility>

#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/metrics.hpp>
#include <holdfast/server/server.hpp>
#include <holdfast/server_bench/server_suite.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::server_bench {

MeasuredChild::MeasuredChild(const std::filesystem::path& program, const std::string& url)
    : process_({.arguments = {program.string(), measured_word, url}, .environment = {}}) {
    int port = 0;
    std::istringstream(next_line()) >> pid_ >> port;
    address_ = fmt::format("127.0.0.1:{}", port);
}

ChildCounts MeasuredChild::counts() {
    ::kill(static_cast<pid_t>(pid_), SIGUSR1);
    ChildCounts counts;
    std::istringstream(next_line()) >> counts.run_commits >> counts.other_commits >>
        counts.commits >> counts.statements;
    return counts;
}

std::string MeasuredChild::next_line() {
    constexpr std::chrono::seconds patience{60};
    const Deadline deadline = Deadline::after(patience);
    while (unread_.find('\n') == std::string::npos) {
        const auto more = process_.read(deadline);
        if (!more || more->empty()) {
            throw Error(Code::unavailable,
                        Outcome::not_applied,
                        "the server that the benchmark started has ended, or does not answer; its "
                        "error is above");
        }
        unread_ += *more;
    }
    const std::size_t end = unread_.find('\n');
    std::string line = unread_.substr(0, end);
    unread_.erase(0, end + 1);
    return line;
}

int serve_measured(const std::string& url) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) {
        sigaddset(&signals, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // For all threads of the server as well.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);

    const std::unique_ptr<Logger> log =
        make_logger({.level = Level::error, .format = LogFormat::text});
    Metrics metrics;
    sql::DatabaseOptions options;
    options.metrics = &metrics;
    options.logger = log.get();
    sql::Database db(url, std::move(options));
    server::Server server(db, *log, {.port = 0});
    fmt::print("{} {}\n", ::getpid(), server.port());
    (void)std::fflush(stdout);
    for (;;) {
        int signal = 0;
        (void)::sigwait(&signals, &signal);
        if (signal == SIGTERM) {
            break;
        }
        if (signal == SIGUSR1) {
            const server::ServerCounts counts = server.counts();
            const sql::DriverStats stats = db.driver_stats();
            fmt::print("{} {} {} {}\n",
                       counts.run_commits,
                       counts.other_commits,
                       stats.commits,
                       stats.statements);
            (void)std::fflush(stdout);
        }
    }
    server.stop();
    return 0;
}

}  // namespace holdfast::server_bench
