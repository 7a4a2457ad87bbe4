#include "sent.hpp"

#include <mutex>
#include <set>
#include <utility>

#include "postgres/libpq.hpp"

namespace holdfast::test {
namespace {

struct Record {
    std::mutex mutex;
    bool open = false;
    std::set<std::string> known;
    std::vector<std::string> fresh;

    void add(const char* text) {
        const std::lock_guard lock(mutex);
        if (open && known.insert(text).second) {
            fresh.emplace_back(text);
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
        record().add(text);
        return real.PQsendPrepare(connection, name, text, rest...);
    };
    table.PQsendQueryParams = [](PGconn* connection, const char* text, auto... rest) {
        record().add(text);
        return real.PQsendQueryParams(connection, text, rest...);
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
}

std::vector<std::string> Sent::take() {
    const std::lock_guard lock(record().mutex);
    return std::exchange(record().fresh, {});
}

}  // namespace holdfast::test
