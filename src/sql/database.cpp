#include <holdfast/sql/database.hpp>

#include <filesystem>

#include "engine.hpp"
#include "postgres/postgres_driver.hpp"
#include "sqlite/sqlite_driver.hpp"
#include <fmt/core.h>

#include <holdfast/sql/url.hpp>

namespace holdfast::sql {
namespace {

// The label of a database's metrics: its file, its database or its host, never the user.
std::string default_name(const Url& url) {
    std::string name = std::filesystem::path(url.rest).filename().string();
    if (url.rest.starts_with("//")) {
        name.erase(0, name.rfind('@') + 1);
    }
    return name.empty() ? url.scheme : name;
}

std::unique_ptr<Driver> open_driver(const Url& url, const DatabaseOptions& options) {
    if (url.embedded()) {
        return open_sqlite(url, options);
    }
    if (url.scheme == "postgres" || url.scheme == "postgresql") {
        return open_postgres(url, options, postgres_source(url, options));
    }
    const auto source = options.sources.find(url.scheme);
    if (source != options.sources.end()) {
        return open_postgres(url, options, source->second(url));
    }
    throw InvalidArgument(
        fmt::format("this program has no database driver for '{}:'; use sqlite: or postgres://{}",
                    url.scheme,
                    url.scheme == "dsql" ? ", or open it with dsql::every_database()" : ""));
}

std::unique_ptr<Engine> open_engine(std::string_view text, DatabaseOptions options) {
    const Url url = parse_url(text);
    if (options.name.empty()) {
        options.name = default_name(url);
    }
    auto driver = open_driver(url, options);
    return std::make_unique<Engine>(std::move(driver), std::move(options));
}

constexpr std::chrono::seconds patience_of_destructor{30};

}  // namespace

Database::Database(std::string_view url, DatabaseOptions options)
    : engine_(open_engine(url, std::move(options))) {}

Database::~Database() {
    engine_->driver().stop(Deadline::after(patience_of_destructor));
}

const Dialect& Database::dialect() const noexcept {
    return engine_->dialect();
}

const std::string& Database::name() const noexcept {
    return engine_->name();
}

void Database::transact_erased(std::string_view operation,
                               const TxOptions& options,
                               const std::function<void(Tx&)>& body) {
    engine_->transact(operation, options, body);
}

Result Database::run_erased(std::string_view operation,
                            const TxOptions& options,
                            const Statement& statement,
                            std::span<const Param> args) {
    return engine_->run(operation, options, statement, args);
}

Result Database::run(std::string_view operation,
                     const TxOptions& options,
                     const BuiltQuery& query) {
    return engine_->run(operation, options, query);
}

Result Database::run_fenced(std::string_view operation,
                            const TxOptions& options,
                            const Guard& guard,
                            const FencedStatement& statement,
                            std::span<const Param> args) {
    return engine_->run_fenced(operation, options, guard, statement, args);
}

bool Database::try_fenced(std::string_view operation,
                          const TxOptions& options,
                          const Guard& guard,
                          const FencedStatement& statement,
                          std::span<const Param> args) {
    return engine_->try_fenced(operation, options, guard, statement, args);
}

std::unique_ptr<Subscription> Database::subscribe(
    std::string_view channel, std::function<void(std::string_view payload)> wake) {
    return engine_->driver().subscribe(channel, std::move(wake));
}

PoolStats Database::pool_stats() const {
    return engine_->driver().pool_stats();
}

DriverStats Database::driver_stats() const {
    return engine_->driver().driver_stats();
}

void Database::stop(Deadline deadline) {
    engine_->driver().stop(deadline);
}

}  // namespace holdfast::sql
