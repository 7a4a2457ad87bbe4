#include <holdfast/dsql/private_postgres.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>

#include "local/watchdog.hpp"
#include <fmt/core.h>
#include <libpq-fe.h>
#include <unistd.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast::dsql {

namespace fs = std::filesystem;

namespace {

// A loaded machine, with a crash to recover from.
constexpr std::chrono::seconds longest_start{60};
constexpr std::chrono::milliseconds between_looks{5};

[[nodiscard]] std::map<std::string, std::string> settings_of(const PostgresPlan& plan) {
    const std::string on = plan.fsync ? "on" : "off";
    std::map<std::string, std::string> settings = plan.settings;
    // Keeps the caller's settings.
    settings.insert({{"fsync", on},
                     {"full_page_writes", on},
                     {"max_connections", "200"},
                     {"shared_buffers", "32MB"},
                     {"jit", "off"},
                     {"lc_messages", "C"},
                     // Else every file is flushed by itself after a crash.
                     {"recovery_init_sync_method", "syncfs"},
                     // In the folder, so that a killed server leaves nothing elsewhere.
                     {"dynamic_shared_memory_type", "mmap"}});
    return settings;
}

[[nodiscard]] std::string end_of_log(const fs::path& folder) {
    constexpr std::size_t enough = 600;
    std::ifstream file(folder / "log");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.substr(text.size() - std::min(text.size(), enough));
}

void start_and_wait(Watchdog& watchdog,
                    const PostgresAddress& address,
                    const std::stop_token& stop) {
    const auto deadline = Deadline::after(longest_start);
    for (bool lives = watchdog.start(); !address.answers(); lives = watchdog.server_lives()) {
        if (!lives || deadline.passed()) {
            throw Error(
                Code::unavailable,
                Outcome::not_applied,
                "the private PostgreSQL did not start: " + end_of_log(address.socket_folder));
        }
        if (!system_clock().sleep_until(system_clock().steady_now() + between_looks, stop)) {
            throw Error(Code::cancelled,
                        Outcome::not_applied,
                        "the start of the private PostgreSQL was cancelled");
        }
    }
}

[[nodiscard]] ServerPlan server_plan(const PostgresPlan& plan, Lifetime lifetime) {
    return {.folder = plan.folder,
            .data = plan.data.empty() ? plan.folder / "data" : plan.data,
            .durable = plan.fsync,
            .settings = settings_of(plan),
            .owner = plan.owner == 0 ? ::getpid() : plan.owner,
            .lifetime = lifetime};
}

}  // namespace

std::string PostgresAddress::url(std::string_view database) const {
    return fmt::format("postgres://postgres@/{}?host={}", database, socket_folder.string());
}

std::string PostgresAddress::conninfo(std::string_view database) const {
    return fmt::format("host={} user=postgres dbname={}", socket_folder.string(), database);
}

bool PostgresAddress::answers() const {
    // Without a folder libpq would connect to the machine's own server.
    return !socket_folder.empty() && PQping(conninfo().c_str()) == PQPING_OK;
}

PrivatePostgres::PrivatePostgres(const PostgresPlan& plan)
    : address_{plan.folder},
      stop_(plan.stop),
      watchdog_(std::make_unique<Watchdog>(server_plan(plan, Lifetime::handle))) {
    start();
}

PrivatePostgres::~PrivatePostgres() = default;

void PrivatePostgres::crash() {
    watchdog_->crash();
}
void PrivatePostgres::stop() {
    watchdog_->stop();
}
void PrivatePostgres::start() {
    start_and_wait(*watchdog_, address_, stop_);
}

void start_and_leave(const PostgresPlan& plan) {
    Watchdog watchdog(server_plan(plan, Lifetime::server));
    start_and_wait(watchdog, PostgresAddress{plan.folder}, plan.stop);
}

void end_left(const fs::path& folder) {
    pid_t server = 0;
    std::ifstream(folder / "data" / "postmaster.pid") >> server;
    if (server > 0) {
        ::kill(server, SIGQUIT);
    }
    constexpr std::chrono::seconds patience{20};
    const auto deadline = Deadline::after(patience);
    while (server > 0 && fs::exists(folder) && !deadline.passed()) {
        system_clock().sleep_until(system_clock().steady_now() + between_looks, {});
    }
}

}  // namespace holdfast::dsql
