#include <holdfast/flow/store.hpp>

#include <utility>

#include "runtime/local_bus.hpp"

#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/sql/schema.hpp>

namespace holdfast::flow {
namespace {

sql::DatabaseOptions creating(sql::DatabaseOptions options) {
    options.create = true;
    return options;
}

// An embedded file belongs to the program that opens it; a server's schema belongs to its operator.
void prepare_schema(sql::Database& db) {
    if (db.dialect().embedded) {
        sql::schema_apply(db, schema_part(), sql::TxOptions{});
    } else {
        sql::schema_require(db, schema_part(), sql::TxOptions{});
    }
}

}  // namespace

Store::Store(sql::Database& db)
    : db_(&db),
      own_provider_((prepare_schema(db), std::make_unique<SqlProvider>(db))),
      provider_(own_provider_.get()),
      bus_(std::make_unique<detail::LocalBus>()),
      notifications_(listen()) {}

Store::Store(std::string_view url, sql::DatabaseOptions options)
    : own_db_(std::make_unique<sql::Database>(url, creating(std::move(options)))),
      db_(own_db_.get()),
      own_provider_((prepare_schema(*db_), std::make_unique<SqlProvider>(*db_))),
      provider_(own_provider_.get()),
      bus_(std::make_unique<detail::LocalBus>()),
      notifications_(listen()) {}

Store::Store(sql::Database& db, Provider& provider)
    : db_(&db), provider_(&provider), bus_(std::make_unique<detail::LocalBus>()) {
    prepare_schema(db);
}

// Only if the database has notifications: within this process the bus is faster.
std::unique_ptr<sql::Subscription> Store::listen() {
    if (!db_->dialect().notifies) {
        return nullptr;
    }
    return db_->subscribe("holdfast_flow",
                          [this](std::string_view payload) { bus_->notified(payload); });
}

Store::~Store() {
    notifications_.reset();
}

std::shared_ptr<Store> open(std::string_view url, sql::DatabaseOptions options) {
    return std::make_shared<Store>(url, std::move(options));
}

}  // namespace holdfast::flow
