#include <holdfast/server/check.hpp>

#include <vector>

#include "engine/codec.hpp"
#include "engine/test/server_fixture.hpp"
#include <gmock/gmock.h>

#include <holdfast/store/execution.hpp>
#include <holdfast/store/shard.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::server {
namespace {

using engine::tests::activity_command;
using engine::tests::complete_command;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckTest : public engine::tests::ServerTest {
protected:
    std::vector<CheckedRun> checked() {
        std::vector<CheckedRun> runs;
        check_runs(db, [&](const CheckedRun& run) {
            runs.push_back(run);
            return true;
        });
        return runs;
    }
    // The entry of the lists for the only run.
    store::VisibilityRecord entry() {
        const auto ns = process->namespaces.find("default");
        const store::NamespaceId id{engine::uuid_of(ns->id)};
        return store::Visibility(db).list(id, "", 10).records.at(0);
    }
};

TEST_P(CheckTest, WhatAServerWritesIsRight) {
    start("open");
    start("done");
    EXPECT_EQ(complete(poll().response(), {activity_command("a")}).refusal(), nullptr);
    EXPECT_EQ(complete(poll().response(), {complete_command()}).refusal(), nullptr);
    const auto runs = checked();
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_EQ(count_runs(db), 2);
    for (const CheckedRun& run : runs) {
        EXPECT_EQ(run.namespace_name, "default");
        EXPECT_GE(run.events, 5);
        EXPECT_THAT(run.problems, IsEmpty()) << run.workflow_id;
    }
}

TEST_P(CheckTest, AnEntryOfTheListsThatDiffersFromItsRunIsFound) {
    start("order");
    store::VisibilityRecord wrong = entry();
    wrong.status = store::RunStatus::completed;
    wrong.close_time = wrong.start_time;
    store::Visibility lists(db);
    lists.remove(wrong.ns, wrong.run);
    EXPECT_TRUE(lists.insert(wrong));
    const auto runs = checked();
    ASSERT_EQ(runs.size(), 1U);
    EXPECT_THAT(runs[0].problems,
                ElementsAre("lists say WORKFLOW_EXECUTION_STATUS_COMPLETED, and its state says "
                            "WORKFLOW_EXECUTION_STATUS_RUNNING"));
}

TEST_P(CheckTest, AnEntryOfTheListsWithoutARunIsFound) {
    start("order");
    store::VisibilityRecord ghost = entry();
    ghost.run = store::RunId{Uuid::v4()};
    EXPECT_TRUE(store::Visibility(db).insert(ghost));
    std::vector<std::string> problems;
    for (const CheckedRun& run : checked()) {
        problems.insert(problems.end(), run.problems.begin(), run.problems.end());
    }
    EXPECT_THAT(problems, ElementsAre("lists have the run, and it has no state"));
}

INSTANTIATE_TEST_SUITE_P(Every, CheckTest, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::server
