#include "sent.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "postgres/libpq.hpp"

namespace holdfast::test {
namespace {

struct Record {
    std::mutex mutex;
    bool open = false;
    std::set<std::string> known;
    std::vector<std::string> fresh;
    std::map<std::pair<const PGconn*, std::string>, std::string> prepared;
    std::map<const PGconn*, std::vector<std::string>> begun;
    std::set<std::vector<std::string>> transactions;

    void add(const std::string& text) {
        if (open && known.insert(text).second) {
            fresh.push_back(text);
        }
    }
    void prepare(const PGconn* connection, const char* name, const char* text) {
        const std::lock_guard lock(mutex);
        add(text);
        prepared[{connection, name}] = text;
    }
    void execute(const PGconn* connection, const std::string& text) {
        const std::lock_guard lock(mutex);
        add(text);
        follow(connection, text);
    }
    void execute_prepared(const PGconn* connection, const char* name) {
        const std::lock_guard lock(mutex);
        follow(connection, prepared[{connection, name}]);
    }
    // Keeps apart what is committed together.
    void follow(const PGconn* connection, const std::string& text) {
        if (text.starts_with("BEGIN")) {
            begun[connection].clear();
        } else if (text == "ROLLBACK") {
            begun.erase(connection);
        } else if (const auto block = begun.find(connection); block == begun.end()) {
            commit({text});
        } else if (text == "COMMIT") {
            commit(std::move(block->second));
            begun.erase(block);
        } else {
            block->second.push_back(text);
        }
    }
    void commit(std::vector<std::string> together) {
        if (open) {
            transactions.insert(std::move(together));
        }
    }
};

Record& record() {
    static Record all;
    return all;
}

// The driver calls libpq through a table; here it is one that takes notes.
void listen_in() {
    static const sql::postgres::Libpq real = sql::postgres::libpq();
    // One object for the process, and no constant one.
    auto& table = const_cast<sql::postgres::Libpq&>(sql::postgres::libpq());
    table.PQsendPrepare = [](PGconn* connection, const char* name, const char* text, auto... rest) {
        record().prepare(connection, name, text);
        return real.PQsendPrepare(connection, name, text, rest...);
    };
    table.PQsendQueryParams = [](PGconn* connection, const char* text, auto... rest) {
        record().execute(connection, text);
        return real.PQsendQueryParams(connection, text, rest...);
    };
    table.PQsendQueryPrepared = [](PGconn* connection, const char* name, auto... rest) {
        record().execute_prepared(connection, name);
        return real.PQsendQueryPrepared(connection, name, rest...);
    };
}

}  // namespace

Sent::Sent() {
    static const bool listening = (listen_in(), true);
    static_cast<void>(listening);
    const std::lock_guard lock(record().mutex);
    record().open = true;
}

Sent::~Sent() {
    const std::lock_guard lock(record().mutex);
    record().open = false;
    record().known.clear();
    record().fresh.clear();
    record().transactions.clear();
}

std::vector<std::string> Sent::take() {
    const std::lock_guard lock(record().mutex);
    return std::exchange(record().fresh, {});
}

std::set<std::vector<std::string>> Sent::transactions() const {
    const std::lock_guard lock(record().mutex);
    return record().transactions;
}

}  // namespace holdfast::test
