// Where workflows live, and where the runtimes and clients of one process meet.
#pragma once

#include <memory>
#include <string_view>

#include <holdfast/sql/database.hpp>

namespace holdfast::flow {

class Provider;
namespace detail {
class LocalBus;
}

// Safe to share between threads. Runtimes and clients that share one wake each other directly;
// those in other processes find out through the database.
class Store {
public:
    // Requires: `db` outlives the store. SQLite gets the tables if they are missing; on a server
    // they must be there (holdfast schema apply --part flow), else condition_failed.
    explicit Store(sql::Database& db);
    // Opens the database itself; a SQLite file is created if it is missing.
    explicit Store(std::string_view url, sql::DatabaseOptions options = {});
    // Everything goes through `provider`, which must outlive the store: for tests that inject
    // faults.
    Store(sql::Database& db, Provider& provider);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    [[nodiscard]] sql::Database& database() noexcept { return *db_; }
    [[nodiscard]] Provider& provider() noexcept { return *provider_; }
    [[nodiscard]] detail::LocalBus& bus() noexcept { return *bus_; }

private:
    [[nodiscard]] std::unique_ptr<sql::Subscription> listen();

    std::unique_ptr<sql::Database> own_db_;
    sql::Database* db_;
    std::unique_ptr<Provider> own_provider_;
    Provider* provider_;
    std::unique_ptr<detail::LocalBus> bus_;
    std::unique_ptr<sql::Subscription> notifications_;
};

// flow::open("sqlite:shop.db"), flow::open("postgres://...")
[[nodiscard]] std::shared_ptr<Store> open(std::string_view url, sql::DatabaseOptions options = {});

}  // namespace holdfast::flow
