#include <holdfast/testing/postgres.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>

#include "watchdog.hpp"
#include <fmt/core.h>
#include <libpq-fe.h>
#include <unistd.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::test {

namespace fs = std::filesystem;

namespace {

// A loaded machine, with a crash to recover from.
constexpr std::chrono::seconds longest_start{60};
constexpr std::chrono::milliseconds between_looks{5};

[[nodiscard]] std::map<std::string, std::string> settings_of(const PostgresOptions& options) {
    const std::string on = options.fsync ? "on" : "off";
    std::map<std::string, std::string> settings = options.settings;
    // Keeps what the caller has asked for.
    settings.insert({{"fsync", on},
                     {"full_page_writes", on},
                     {"max_connections", "200"},
                     {"shared_buffers", "32MB"},
                     {"jit", "off"},
                     {"autovacuum", "off"},
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

void start_and_wait(Watchdog& watchdog, const PostgresAddress& address) {
    const auto deadline = Deadline::after(longest_start);
    for (bool lives = watchdog.start(); !address.answers(); lives = watchdog.server_lives()) {
        if (!lives || deadline.passed()) {
            throw Error(
                Code::unavailable,
                Outcome::not_applied,
                "the private PostgreSQL did not start: " + end_of_log(address.socket_folder));
        }
        system_clock().sleep_until(std::chrono::steady_clock::now() + between_looks, {});
    }
}

// A process of its own per test program, unless a run shares one.
[[nodiscard]] PostgresAddress find_shared() {
    if (const char* link = std::getenv("HOLDFAST_TEST_POSTGRES"); link != nullptr) {
        std::error_code missing;
        PostgresAddress address{fs::read_symlink(link, missing)};
        if (!missing && address.answers()) {
            return address;
        }
    }
    static PrivatePostgres server;
    return server.address();
}

}  // namespace

std::string PostgresAddress::url(std::string_view database) const {
    return fmt::format("postgres://postgres@/{}?host={}", database, socket_folder.string());
}

std::string PostgresAddress::conninfo(std::string_view database) const {
    return fmt::format("host={} user=postgres dbname={}", socket_folder.string(), database);
}

bool PostgresAddress::answers() const {
    // Without a folder libpq would ask the machine's own server.
    return !socket_folder.empty() && PQping(conninfo().c_str()) == PQPING_OK;
}

PrivatePostgres::PrivatePostgres(PostgresOptions options) : address_{folder_.path()} {
    watchdog_ = std::make_unique<Watchdog>(ServerPlan{
        .folder = folder_.path(), .settings = settings_of(options), .owner = ::getpid()});
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
    start_and_wait(*watchdog_, address_);
}

const PostgresAddress& shared_postgres() {
    static const PostgresAddress address = find_shared();
    return address;
}

void start_linked(const fs::path& link, int owner) {
    std::error_code missing;
    if (PostgresAddress{fs::read_symlink(link, missing)}.answers()) {
        return;
    }
    const ServerPlan plan{.folder = make_temp_dir(),
                          .settings = settings_of({}),
                          .owner = owner,
                          .lifetime = Lifetime::server};
    Watchdog watchdog(plan);
    start_and_wait(watchdog, PostgresAddress{plan.folder});
    fs::create_directories(fs::absolute(link).parent_path());
    fs::remove(link);
    fs::create_symlink(plan.folder, link);
}

void stop_linked(const fs::path& link) {
    std::error_code missing;
    const fs::path folder = fs::read_symlink(link, missing);
    if (missing) {
        return;
    }
    end_server(folder);
    fs::remove(link);
}

}  // namespace holdfast::test
