#include "sent.hpp"

#include <mutex>
#include <set>
#include <utility>

#include <libpq-fe.h>

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

}  // namespace

Sent::Sent() {
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

// The linker puts these in the place of libpq's functions, and calls those by other names.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
int __real_PQsendPrepare(
    PGconn* connection, const char* name, const char* text, int count, const Oid* types);
int __wrap_PQsendPrepare(
    PGconn* connection, const char* name, const char* text, int count, const Oid* types) {
    holdfast::test::record().add(text);
    return __real_PQsendPrepare(connection, name, text, count, types);
}

int __real_PQsendQueryParams(PGconn* connection,
                             const char* text,
                             int count,
                             const Oid* types,
                             const char* const* values,
                             const int* lengths,
                             const int* formats,
                             int format);
int __wrap_PQsendQueryParams(PGconn* connection,
                             const char* text,
                             int count,
                             const Oid* types,
                             const char* const* values,
                             const int* lengths,
                             const int* formats,
                             int format) {
    holdfast::test::record().add(text);
    return __real_PQsendQueryParams(
        connection, text, count, types, values, lengths, formats, format);
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
