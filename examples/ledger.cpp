// A ledger: money moves from one account to another, or it does not move at all.
//
//   ledger 'sqlite:ledger.db?create=1'
//   ledger postgres://user@host/ledger
//
// It shows the three things that a program on Holdfast's sql floor has to decide: what belongs into
// one transaction, what to do when a row is not as it believed, and what to do when the
// outcome of a commit is unknown.
#include <array>
#include <cstdint>
#include <iostream>
#include <string>

#include <holdfast/base/error.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/schema.hpp>

namespace sql = holdfast::sql;

namespace {

// Written once; {bigint} and the like become each database's own words.
constexpr std::array<sql::MigrationFile, 1> schema_files{{{"0001_ledger", R"sql(
    CREATE TABLE example_accounts (
        name TEXT NOT NULL PRIMARY KEY,
        cents {bigint} NOT NULL,
        version {bigint} NOT NULL
    ) {strict};
    CREATE TABLE example_transfers (
        transfer_id {uuid} NOT NULL PRIMARY KEY,
        payer TEXT NOT NULL,
        payee TEXT NOT NULL,
        cents {bigint} NOT NULL
    ) {strict};
)sql"}}};
constexpr sql::SchemaPart schema{.name = "example_ledger", .files = schema_files};

constexpr sql::Statement open_account{
    "ledger.open_account",
    "INSERT INTO example_accounts (name, cents, version) VALUES ($1, $2, 1) "
    "ON CONFLICT (name) DO NOTHING"};
constexpr sql::Statement load_account{
    "ledger.load_account", "SELECT cents, version FROM example_accounts WHERE name = $1"};
constexpr sql::Statement record_transfer{
    "ledger.record_transfer",
    "INSERT INTO example_transfers (transfer_id, payer, payee, cents) VALUES ($1, $2, $3, $4) "
    "ON CONFLICT (transfer_id) DO NOTHING"};
// Changes an account only while it is as its reader saw it. The second text finds out what is there
// instead, for the error.
constexpr sql::FencedStatement set_balance{"ledger.set_balance",
                                           "UPDATE example_accounts SET cents = $3, version = "
                                           "version + 1 WHERE name = $1 AND version = $2",
                                           "SELECT version FROM example_accounts WHERE name = $1"};

// An account as it was read.
struct Account {
    std::string name;
    std::int64_t cents = 0;
    std::int64_t version = 0;

    [[nodiscard]] sql::Guard guard() const {
        return {.what = "account " + name, .key = {name}, .tokens = {version}};
    }
};

Account load(sql::Database& db, const std::string& name) {
    const auto rows = db.transact("ledger.load", {.read_only = true}, [&](sql::Tx& tx) {
        return tx.query(load_account, name);
    });
    const auto [cents, version] = rows[0].as<std::int64_t, std::int64_t>();
    return {.name = name, .cents = cents, .version = version};
}

// Moves money between accounts that are still as they were seen; else throws ConditionFailed and
// moves nothing. May be repeated with the same id: it moves the money once.
void move_money(sql::Database& db,
                const holdfast::Uuid& id,
                const Account& payer,
                const Account& payee,
                std::int64_t cents) {
    db.transact("ledger.move", {}, [&](sql::Tx& tx) {
        // The body may run again after a conflict, so it does nothing but this.
        if (tx.count(record_transfer, id, payer.name, payee.name, cents) == 0) {
            return;  // It had arrived after all.
        }
        tx.fenced(payer.guard(), set_balance, payer.cents - cents);
        tx.fenced(payee.guard(), set_balance, payee.cents + cents);
    });
}

void pay(sql::Database& db, Account payer, Account payee, std::int64_t cents) {
    const holdfast::Uuid id = holdfast::Uuid::v4();
    constexpr int attempts_max = 10;
    for (int attempt = 1; attempt <= attempts_max; ++attempt) {
        try {
            move_money(db, id, payer, payee, cents);
            std::cout << payer.name << " paid " << cents << " cents to " << payee.name << '\n';
            return;
        } catch (const sql::ConditionFailed& changed) {
            // A normal answer: another writer was faster. Read again, and decide again.
            std::cout << changed.subject() << " has changed meanwhile; looking again\n";
            payer = load(db, payer.name);
            payee = load(db, payee.name);
            if (payer.cents < cents) {
                std::cout << payer.name << " cannot afford it any more\n";
                return;
            }
        } catch (const holdfast::Error& error) {
            // The connection broke, and the outcome of the commit is unknown. Repeating blindly
            // might pay twice; repeating with the same id cannot.
            if (error.outcome() != holdfast::Outcome::unknown) {
                throw;
            }
        }
    }
    std::cout << "too much traffic; nothing was paid\n";
}

void run(const std::string& url) {
    sql::Database db{url};
    sql::schema_apply(db, schema, {});
    db.transact("ledger.open", {}, [](sql::Tx& tx) {
        tx.exec(open_account, "ann", 10'000);
        tx.exec(open_account, "bob", 0);
    });

    const Account ann = load(db, "ann");
    const Account bob = load(db, "bob");
    pay(db, ann, bob, 2'500);
    pay(db, ann, bob, 1'000);  // With what we saw before the first payment, which is old by now.

    for (const char* name : {"ann", "bob"}) {
        std::cout << name << " has " << load(db, name).cents << " cents\n";
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: ledger URL, for example ledger 'sqlite:ledger.db?create=1'\n";
        return 2;
    }
    try {
        run(argv[1]);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "ledger: " << error.what() << '\n';
        return 1;
    }
}
