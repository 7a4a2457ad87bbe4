// Property 6 of docs/conformance/properties.md: whatever goes wrong, the data stay consistent, and
// what the caller was told agrees with them.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <holdfast/sql/database.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/crash.hpp>
#include <holdfast/testing/fault_proxy.hpp>

namespace holdfast {

namespace {

using namespace std::chrono_literals;

constexpr sql::FencedStatement debit{"account.debit",
                                     "UPDATE accounts SET balance = balance - $3, version = "
                                     "version + 1 WHERE id = $1 AND version = $2",
                                     "SELECT version FROM accounts WHERE id = $1"};
constexpr sql::Statement credit{"account.credit",
                                "UPDATE accounts SET balance = balance + $2 WHERE id = $1"};
constexpr sql::Statement record{"effect.record",
                                "INSERT INTO effects (id, amount) VALUES ($1, $2)"};
constexpr sql::Statement take{"taken.take", "INSERT INTO taken (id) VALUES ($1)"};
constexpr sql::Statement look{"account.look", "SELECT balance FROM accounts WHERE id = $1"};

constexpr std::int64_t money = 1'000'000;

enum class Trouble {
    none,
    body_throws,  // At a stage of the body.
    guard_lost,
    cancelled,     // At a stage of the body.
    late,          // The deadline has passed at a stage of the body.
    process_dies,  // By kill -9, at a stage of the body.
    duplicate,     // A statement that the database refuses.
    // Of a server:
    backend_dies,  // By the server's own hand, at a stage of the body.
    // On a way to it that can be read:
    cut_to_server,
    cut_to_client,
    answer_lost,
};
constexpr int stages = 4;
constexpr int messages_max = 30;  // More than a transfer has; beyond them nothing strikes.

struct Transfer {
    Trouble trouble;
    int stage;
    int message;
    std::int64_t amount;
};

std::ostream& operator<<(std::ostream& out, const Transfer& transfer) {
    return out << "{trouble " << static_cast<int>(transfer.trouble) << ", stage " << transfer.stage
               << ", message " << transfer.message << ", amount " << transfer.amount << "}";
}

Trouble last_of(test::Backend backend) {
    switch (backend) {
        case test::Backend::sqlite:
            return Trouble::duplicate;
        case test::Backend::dsql:
            return Trouble::backend_dies;
        case test::Backend::postgres:
            return Trouble::answer_lost;
    }
    return Trouble::none;
}

rc::Gen<Transfer> any_transfer(test::Backend backend) {
    const auto one = rc::gen::build<Transfer>(
        rc::gen::set(&Transfer::trouble,
                     rc::gen::map(rc::gen::inRange(0, static_cast<int>(last_of(backend)) + 1),
                                  [](int kind) { return static_cast<Trouble>(kind); })),
        rc::gen::set(&Transfer::stage, rc::gen::inRange(0, stages)),
        rc::gen::set(&Transfer::message, rc::gen::inRange(1, messages_max)),
        rc::gen::set(&Transfer::amount, rc::gen::inRange<std::int64_t>(1, 100)));
    // Few of them at a time, but each may be any: a range is as wide as the size lets it be.
    return rc::gen::resize(rc::kNominalSize, one);
}

// Two accounts, and a row for every transfer between them.
class Bank {
public:
    explicit Bank(test::Backend backend) : db_(test::that_forks(backend)) {
        db_.execute(
            "CREATE TABLE accounts (id {bigint} NOT NULL, balance {bigint} NOT NULL,"
            "                       version {bigint} NOT NULL, PRIMARY KEY (id)) {strict};"
            "CREATE TABLE effects (id {bigint} NOT NULL, amount {bigint} NOT NULL) {strict};"
            "CREATE TABLE taken (id {bigint} NOT NULL, PRIMARY KEY (id)) {strict};"
            "INSERT INTO accounts VALUES (1, 1000000, 0), (2, 0, 0);"
            "INSERT INTO taken VALUES (1)");
        db_.close();  // We work by another handle, on a way that can be cut.
        open();
    }

    // Tries it, and checks that what is said about it agrees with what is there.
    void transfer(const Transfer& transfer) {
        const std::int64_t id = ++newest_;
        reports_[id] = attempt(transfer, id);
        const auto row = db_.look(
            "SELECT (SELECT sum(balance) FROM accounts),"
            "       (SELECT balance FROM accounts WHERE id = 2)"
            "           - (SELECT coalesce(sum(amount), 0) FROM effects),"
            "       (SELECT version FROM accounts WHERE id = 1) - (SELECT count(*) FROM effects)");
        RC_ASSERT(row.at(0) == (test::Database::Cells{std::to_string(money), "0", "0"}));
        RC_ASSERT(agrees(id));
    }

    // Later: a server may have worked on for a client that was gone.
    [[nodiscard]] bool all_agree() {
        close();
        return std::all_of(reports_.begin(), reports_.end(), [this](const auto& report) {
            return agrees(report.first);
        });
    }

private:
    // Empty if it succeeded.
    std::optional<Outcome> attempt(const Transfer& transfer, std::int64_t id) {
        const std::int64_t version = db_.number("SELECT version FROM accounts WHERE id = 1");
        if (transfer.trouble == Trouble::process_dies) {
            return die(transfer, id, version);
        }
        std::stop_source stop;
        sql::TxOptions options;
        options.stop = stop.get_token();
        if (transfer.trouble == Trouble::late) {
            options.deadline = Deadline::after(5ms);
        }
        arm(transfer);
        const auto strike = [&](sql::Tx& tx) {
            switch (transfer.trouble) {
                case Trouble::body_throws:
                    throw std::runtime_error("on purpose");
                case Trouble::cancelled:
                    stop.request_stop();
                    break;
                case Trouble::late:
                    while (!options.deadline.passed()) {
                        std::this_thread::yield();
                    }
                    break;
                case Trouble::duplicate:
                    tx.exec(take, 1);
                    break;
                case Trouble::backend_dies:
                    end_backend();
                    break;
                default:
                    break;
            }
        };
        try {
            handle_->transact("Transfer", options, [&](sql::Tx& tx) {
                move_money(tx, transfer, id, version, strike);
            });
            return std::nullopt;
        } catch (const Error& error) {
            return error.outcome();
        } catch (const std::runtime_error&) {
            return Outcome::not_applied;
        }
    }

    template <class Strike>
    static void move_money(sql::Tx& tx,
                           const Transfer& transfer,
                           std::int64_t id,
                           std::int64_t version,
                           const Strike& strike) {
        const bool lost = transfer.trouble == Trouble::guard_lost;
        const sql::Guard guard{.what = "account 1",
                               .key = {std::int64_t{1}},
                               .tokens = {lost ? version - 1 : version}};
        const auto reach = [&](int stage) {
            if (transfer.stage == stage) {
                strike(tx);
            }
        };
        reach(0);
        (void)tx.query(look, 1);
        reach(1);
        tx.fenced(guard, debit, transfer.amount);
        reach(2);
        tx.exec(credit, 2, transfer.amount);
        reach(3);
        tx.exec(record, id, transfer.amount);
    }

    // In another process, which is killed in the middle of the transaction.
    Outcome die(const Transfer& transfer, std::int64_t id, std::int64_t version) {
        close();
        test::Victim victim([&](test::Witness& witness) {
            sql::Database own(db_.url(), test::quick_options());
            own.transact("Transfer", {}, [&](sql::Tx& tx) {
                move_money(tx, transfer, id, version, [&](sql::Tx&) {
                    witness.acknowledged(id);
                    ::pause();
                });
            });
        });
        (void)victim.kill_after(1, Deadline::after(20s));
        open();
        return Outcome::not_applied;
    }

    void arm(const Transfer& transfer) {
        if (!proxy_) {
            return;
        }
        proxy_->disarm();
        const auto arm = [&](test::Side side, test::Fault fault) {
            proxy_->arm({.from = side, .nth = transfer.message}, fault);
        };
        switch (transfer.trouble) {
            case Trouble::cut_to_server:
                return arm(test::Side::client, test::Fault::cut);
            case Trouble::cut_to_client:
                return arm(test::Side::server, test::Fault::cut);
            case Trouble::answer_lost:
                return arm(test::Side::client, test::Fault::lose_answer);
            default:
                return;
        }
    }

    void end_backend() const {
        db_.execute(
            "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()");
    }

    [[nodiscard]] bool agrees(std::int64_t id) const {
        const std::int64_t found =
            db_.number("SELECT count(*) FROM effects WHERE id = " + std::to_string(id));
        const std::optional<Outcome>& outcome = reports_.at(id);
        if (!outcome) {
            return found == 1;
        }
        return found == 0 || (*outcome == Outcome::unknown && found == 1);
    }

    void open() {
        std::string url = db_.url();
        if (db_.backend() == test::Backend::postgres) {
            proxy_ = std::make_unique<test::FaultProxy>(test::shared_postgres());
            url = proxy_->address().url(db_.name());
        }
        handle_ = std::make_unique<sql::Database>(url, test::quick_options());
    }
    void close() {
        handle_.reset();
        proxy_.reset();
    }

    test::Database db_;
    std::unique_ptr<test::FaultProxy> proxy_;
    std::unique_ptr<sql::Database> handle_;
    std::int64_t newest_ = 0;
    std::map<std::int64_t, std::optional<Outcome>> reports_;
};

class Property6 : public testing::TestWithParam<test::Backend> {};

TEST_P(Property6, DataIntegrityUnderFailures) {
    HOLDFAST_CHECK("Property 6");
    Bank bank(GetParam());
    EXPECT_TRUE(rc::check("money moves whole or not at all, and the report agrees", [&] {
        const auto transfers = *rc::gen::resize(
            8, rc::gen::container<std::vector<Transfer>>(any_transfer(GetParam())));
        for (const Transfer& transfer : transfers) {
            bank.transfer(transfer);
        }
    }));
    EXPECT_TRUE(bank.all_agree());
}

INSTANTIATE_TEST_SUITE_P(Every, Property6, test::every_backend(), test::backend_name);

}  // namespace

}  // namespace holdfast
