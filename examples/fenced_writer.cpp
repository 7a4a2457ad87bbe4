// A late writer does no harm: Ann is paused in the middle of her work, loses her lock, and wakes up
// sure of herself.
//
//   fenced_writer 'sqlite:reports.db?create=1'
//   fenced_writer postgres://user@host/reports
//
// The report remembers the newest fence that wrote it, and refuses older ones. That is all it
// takes, and it works for anything that can compare two numbers: a row, a file server, a device.
// Where the protected data lie in the same database as the lock, a transaction can do more: assert
// the lock, and commit only while it is held.
#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>

#include <holdfast/base/error.hpp>
#include <holdfast/lock/guard.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/lock/with_lock.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/schema.hpp>

namespace lock = holdfast::lock;
namespace sql = holdfast::sql;
using namespace std::chrono_literals;

namespace {

constexpr std::array<sql::MigrationFile, 1> schema_files{{{"0001_reports", R"sql(
    CREATE TABLE example_reports (
        name TEXT NOT NULL PRIMARY KEY,
        body TEXT NOT NULL,
        fence {bigint} NOT NULL
    ) {strict};
)sql"}}};
constexpr sql::SchemaPart schema{.name = "example_reports", .files = schema_files};

// An equal fence is the same writer's next write; an older one changes nothing.
constexpr sql::Statement write_report{
    "report.write",
    "INSERT INTO example_reports AS r (name, body, fence) VALUES ($1, $2, $3) "
    "ON CONFLICT (name) DO UPDATE SET body = excluded.body, fence = excluded.fence "
    "WHERE r.fence <= excluded.fence"};
constexpr sql::Statement read_report{"report.read",
                                     "SELECT body FROM example_reports WHERE name = $1"};

const std::string report = "report/2026-11";

// False if a holder with a later fence has written meanwhile.
bool write(sql::Database& db, lock::Fence fence, const std::string& body) {
    const auto number = static_cast<std::int64_t>(lock::value_of(fence));
    return db.transact("report.write", {}, [&](sql::Tx& tx) {
        return tx.count(write_report, report, body, number) == 1;
    });
}

std::string read(sql::Database& db) {
    return db.transact("report.read", {.read_only = true}, [](sql::Tx& tx) {
        return tx.query(read_report, report)[0].get<std::string>(0);
    });
}

// Throws condition_failed, and writes nothing, unless the lock is held at the commit.
void write_under(sql::Database& db, lock::Locks& locks, const lock::LockId& id) {
    db.transact("report.write_under", {}, [&](sql::Tx& tx) {
        const lock::Fence fence = lock::assert_held(tx, locks, report, id);
        const auto number = static_cast<std::int64_t>(lock::value_of(fence));
        tx.exec(write_report, report, "by ann, once more", number);
    });
}

void run(const std::string& url) {
    sql::Database db{url};
    sql::schema_apply(db, schema, {});
    sql::schema_apply(db, lock::schema_part(), {});
    lock::Locks locks{db};

    // Ann takes the lock for a second and does not extend it: her machine stands still.
    const auto ann = std::get<lock::Grant>(lock::acquire_waiting(locks, report, 1s));
    std::cout << "ann begins, and is paused" << std::endl;

    // Bob waits until her lease has run out. With with_lock the lease is extended while he works.
    const lock::WithLock options{.key = report, .acquisition = {.timeout = 30s}};
    lock::with_lock(locks, options, [&](lock::Handle& bob) {
        std::cout << "bob takes over with a later fence: " << std::boolalpha
                  << (bob.fence() > ann.fence) << '\n';
        std::cout << "bob writes: " << write(db, bob.fence(), "by bob") << '\n';
    });

    std::cout << "ann wakes up and writes: " << write(db, ann.fence, "by ann") << '\n';
    try {
        write_under(db, locks, ann.lock_id);
    } catch (const holdfast::Error& error) {
        if (error.code() != holdfast::Code::condition_failed) {
            throw;
        }
        std::cout << "ann asserts her lock: it is not held\n";
    }
    std::cout << "the report is " << read(db) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: fenced_writer URL, for example fenced_writer "
                     "'sqlite:reports.db?create=1'\n";
        return 2;
    }
    try {
        run(argv[1]);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "fenced_writer: " << error.what() << '\n';
        return 1;
    }
}
