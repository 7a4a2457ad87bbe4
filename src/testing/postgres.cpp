#include <holdfast/testing/postgres.hpp>

#include <cstdlib>
#include <system_error>

#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::test {

namespace fs = std::filesystem;

namespace {

[[nodiscard]] dsql::PostgresPlan plan_of(const PostgresOptions& options, fs::path folder) {
    std::map<std::string, std::string> settings = options.settings;
    // Unless the caller has asked for something else.
    settings.emplace("autovacuum", "off");
    settings.emplace("max_connections", "500");  // Many cores run many tests at a time.
    return {.folder = std::move(folder), .fsync = options.fsync, .settings = std::move(settings)};
}

// A process of its own per test program, unless a run shares one.
[[nodiscard]] PostgresAddress find_shared() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    if (const char* link = std::getenv("HOLDFAST_TEST_POSTGRES"); link != nullptr) {
        std::error_code missing;
        PostgresAddress address{fs::read_symlink(link, missing)};
        if (!missing && address.answers()) {
            return address;
        }
    }
    static const PrivatePostgres server;
    return server.address();
}

}  // namespace

PrivatePostgres::PrivatePostgres(const PostgresOptions& options)
    : server_(plan_of(options, folder_.path())) {}

const PostgresAddress& shared_postgres() {
    static const PostgresAddress address = find_shared();
    return address;
}

void start_linked(const fs::path& link, int owner) {
    std::error_code missing;
    if (PostgresAddress{fs::read_symlink(link, missing)}.answers()) {
        return;
    }
    dsql::PostgresPlan plan = plan_of({}, make_temp_dir());
    plan.owner = owner;
    dsql::start_and_leave(plan);
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
    dsql::end_left(folder);
    fs::remove(link);
}

}  // namespace holdfast::test
