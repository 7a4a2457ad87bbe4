// kill -9 in the middle of many writers. What was acknowledged is there, once; what was not may be
// there, once; and nothing is there by halves.
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/base/random.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/crash.hpp>

namespace holdfast {

namespace {

using namespace std::chrono_literals;

constexpr int writers = 8;

// Two tables, so that half a transaction shows. Nothing would keep an effect from happening twice.
constexpr sql::Statement add{"effect.add", "INSERT INTO effects (id) VALUES ($1)"};
constexpr sql::Statement add_up{"total.add", "UPDATE totals SET n = n + 1 WHERE writer = $1"};

class KillNine : public testing::TestWithParam<test::Backend> {
protected:
    KillNine() {
        db.execute(
            "CREATE TABLE effects (id {bigint} NOT NULL) {strict};"
            "CREATE TABLE totals (writer {bigint} NOT NULL, n {bigint} NOT NULL,"
            "                     PRIMARY KEY (writer)) {strict}");
        for (int writer = 0; writer < writers; ++writer) {
            db.execute("INSERT INTO totals VALUES (" + std::to_string(writer) + ", 0)");
        }
        db.close();
    }

    // Writes for ever. Ids are never used twice, in this life or another.
    void write_until_killed(test::Witness& witness, std::int64_t life) const {
        sql::Database own(db.url(), test::quick_options());
        std::vector<std::jthread> threads;
        for (std::int64_t writer = 0; writer < writers; ++writer) {
            threads.emplace_back([&, writer] {
                for (std::int64_t n = 0;; ++n) {
                    const std::int64_t id = (life * writers + writer) * 1'000'000 + n;
                    own.transact("Add", {}, [&](sql::Tx& tx) {
                        tx.exec(add, id);
                        tx.exec(add_up, writer);
                    });
                    witness.acknowledged(id);
                }
            });
        }
    }

    std::vector<std::int64_t> effects() const {
        std::vector<std::int64_t> ids;
        for (const auto& row : db.look("SELECT id FROM effects")) {
            ids.push_back(std::stoll(row.at(0).value()));
        }
        return ids;
    }

    test::Database db{test::that_forks(GetParam())};
};

TEST_P(KillNine, LosesNothingAcknowledgedAndDoublesNothing) {
    const int kills = GetParam() == test::Backend::dsql ? 8 : 20;
    std::vector<std::int64_t> acknowledged;
    Random random(1);  // How long each life is. The moment within a commit is the machine's choice.
    for (std::int64_t life = 0; life < kills; ++life) {
        test::Victim victim([&](test::Witness& witness) { write_until_killed(witness, life); });
        const auto seen = victim.kill_after(1 + random.below(100), Deadline::after(60s));
        acknowledged.insert(acknowledged.end(), seen.begin(), seen.end());
        EXPECT_EQ(test::check_statements(acknowledged, effects()), test::Verdict{})
            << "after kill " << life;
        EXPECT_EQ(db.number("SELECT (SELECT sum(n) FROM totals) - (SELECT count(*) FROM effects)"),
                  0)
            << "half a transaction is there after kill " << life;
    }
    EXPECT_GT(acknowledged.size(), static_cast<std::size_t>(kills));
    if (GetParam() == test::Backend::sqlite) {
        EXPECT_EQ(db.look("PRAGMA integrity_check").at(0).at(0), "ok");
    }
}

INSTANTIATE_TEST_SUITE_P(Every, KillNine, test::every_backend(), test::backend_name);

}  // namespace

}  // namespace holdfast
