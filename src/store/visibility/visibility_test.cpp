// What people find when they look for executions.
#include <holdfast/store/visibility.hpp>

#include <algorithm>
#include <functional>

#include "test/store_fixture.hpp"
#include "visibility/search_attributes.hpp"
#include <fmt/core.h>

namespace holdfast::store::tests {
namespace {

class VisibilityStory : public testing::TestWithParam<test::Backend> {
public:
    static sql::Timestamp minute(int n) { return at(1'700'000'000s + std::chrono::minutes{n}); }
    // The same, in a filter.
    static std::string moment(int n) {
        return std::to_string(std::chrono::nanoseconds{minute(n).time_since_epoch()}.count());
    }

    // A run of the workflow `id` that starts at a minute.
    [[nodiscard]] VisibilityRecord run(std::string id, int start) const {
        return {.ns = ns,
                .run = RunId::random(),
                .version = 1,
                .workflow_id = std::move(id),
                .workflow_type = "order",
                .start_time = minute(start),
                .execution_time = minute(start)};
    }
    [[nodiscard]] VisibilityRecord closed(std::string id, int start, int close) const {
        VisibilityRecord made = run(std::move(id), start);
        made.close_time = minute(close);
        made.status = RunStatus::completed;
        return made;
    }
    VisibilityRecord insert(VisibilityRecord record) {
        EXPECT_TRUE(visibility.insert(record));
        return record;
    }
    // The ids of the workflows, in the order in which they come, by pages of any size.
    [[nodiscard]] std::vector<std::string> list(std::string_view filter,
                                                std::int64_t page_size = 100) const {
        std::vector<std::string> ids;
        std::optional<VisibilityPlace> after;
        do {
            const VisibilityPage page = visibility.list(ns, filter, page_size, after);
            for (const VisibilityRecord& record : page.records) {
                ids.push_back(record.workflow_id);
            }
            EXPECT_LE(std::ssize(page.records), page_size);
            after = page.next;
            EXPECT_TRUE(!after || std::ssize(page.records) == page_size);
        } while (after);
        return ids;
    }

    // Of runs that have none.
    [[nodiscard]] std::int64_t attributes_left() const {
        return db.number("SELECT count(*) FROM visibility_attributes");
    }

    const NamespaceId ns = NamespaceId::random();
    MigratedDatabase db{GetParam()};
    Visibility visibility{db};
};

TEST_P(VisibilityStory, TheFirstInsertAndTheNewestReplacementStay) {
    HOLDFAST_CHECK("store 196");
    const VisibilityRecord first = insert(run("order", 0));
    VisibilityRecord second = first;
    second.workflow_type = "other";
    second.version = 9;
    EXPECT_FALSE(visibility.insert(second)) << "an insert never replaces";
    EXPECT_EQ(visibility.find(ns, first.run), first);

    second.version = 3;
    second.status = RunStatus::completed;
    second.close_time = minute(4);
    second.search_attributes = {{"customer", {"\"ann\""}}};
    EXPECT_TRUE(visibility.replace(second));
    VisibilityRecord late = first;
    late.version = 2;
    late.search_attributes = {{"customer", {"\"bob\""}}};
    EXPECT_FALSE(visibility.replace(late)) << "the task of an older state comes last";
    late.version = 3;
    EXPECT_FALSE(visibility.replace(late)) << "or comes twice";
    EXPECT_EQ(visibility.find(ns, first.run), second);
    EXPECT_THAT(list("customer = 'bob'"), IsEmpty());
    EXPECT_THAT(list("customer = 'ann'"), ElementsAre("order"));

    const VisibilityRecord unseen = run("straight to its end", 1);
    EXPECT_TRUE(visibility.replace(unseen)) << "the start may come later, or never";
    EXPECT_FALSE(visibility.insert(unseen));
    EXPECT_EQ(visibility.find(ns, unseen.run), unseen);
}

TEST_P(VisibilityStory, ARunIsFoundAsItWasWrittenUntilItIsDeleted) {
    HOLDFAST_CHECK("store 197");
    VisibilityRecord all = closed("order", 0, 5);
    all.history_length = 12;
    all.history_size_bytes = 3'456;
    all.execution_duration = 300s;
    all.state_transition_count = 7;
    all.memo = blob("memo");
    all.task_queue = "orders";
    all.search_attributes = {{"customer", {"\"ann \\\"the\\\" first\""}},
                             {"amount", {"12.5"}},
                             {"tags", {"[\"a\",\"b\",\"a\"]"}},
                             {"paid", {"true"}}};
    all.parent = RelatedRun{.workflow_id = "parent", .run = RunId::random()};
    all.root = RelatedRun{.workflow_id = "root", .run = RunId::random()};
    insert(all);
    EXPECT_EQ(visibility.find(ns, all.run), all);
    EXPECT_EQ(visibility.find(NamespaceId::random(), all.run), std::nullopt);

    VisibilityRecord newer = run("order", 1);
    newer.run = all.run;
    newer.version = 2;
    EXPECT_TRUE(visibility.replace(newer));
    EXPECT_EQ(visibility.find(ns, all.run), newer) << "all of it is replaced";
    EXPECT_EQ(attributes_left(), 0);

    newer.version = 3;
    newer.search_attributes = all.search_attributes;
    EXPECT_TRUE(visibility.replace(newer));
    visibility.remove(ns, all.run);
    EXPECT_EQ(visibility.find(ns, all.run), std::nullopt);
    EXPECT_EQ(attributes_left(), 0);
    EXPECT_NO_THROW(visibility.remove(ns, all.run)) << "what is gone is deleted";
    EXPECT_TRUE(visibility.insert(all)) << "and may come again";
}

bool is_newer(const VisibilityRecord& a, const VisibilityRecord& b) {
    const auto place = [](const VisibilityRecord& run) {
        return std::tuple(!run.close_time, run.close_time, run.start_time, run.run);
    };
    return place(a) > place(b);
}

class VisibilitySearch : public VisibilityStory {
public:
    // Two types, three statuses, five workflows; every moment is shared by several runs.
    void fill() {
        for (int i = 0; i < 40; ++i) {
            const std::string id = "workflow-" + std::to_string(i % 5);
            VisibilityRecord made = i % 3 == 0 ? run(id, i / 8) : closed(id, i / 8, 10 + i / 12);
            made.workflow_type = i % 2 == 0 ? "order" : "refund";
            if (i % 6 == 1) {
                made.status = RunStatus::failed;
            }
            if (i % 4 < 2) {
                made.search_attributes = {{"customer", {i % 4 == 0 ? "\"ann\"" : "\"bob\""}},
                                          {"level", {std::to_string(i % 3)}}};
            }
            runs.push_back(insert(made));
        }
        VisibilityRecord elsewhere = run("workflow-0", 0);
        elsewhere.ns = NamespaceId::random();
        insert(elsewhere);
    }
    // By pages of one and of many, and by both counts.
    void expect_found(std::string_view filter,
                      const std::function<bool(const VisibilityRecord&)>& matches) {
        std::vector<VisibilityRecord> expected;
        std::map<RunStatus, std::int64_t> counts;
        for (const VisibilityRecord& run : runs) {
            if (matches(run)) {
                expected.push_back(run);
                ++counts[run.status];
            }
        }
        std::sort(expected.begin(), expected.end(), is_newer);
        for (const std::int64_t page_size : {1, 7, 100}) {
            std::vector<VisibilityRecord> found;
            std::optional<VisibilityPlace> after;
            do {
                VisibilityPage page = visibility.list(ns, filter, page_size, after);
                ASSERT_EQ(std::ssize(page.records),
                          std::min(page_size, std::ssize(expected) - std::ssize(found)))
                    << filter << ", pages of " << page_size;
                std::move(page.records.begin(), page.records.end(), std::back_inserter(found));
                after = page.next;
            } while (after);
            EXPECT_EQ(found, expected) << filter << ", pages of " << page_size;
        }
        EXPECT_EQ(visibility.count_by_status(ns, filter), counts) << filter;
        EXPECT_EQ(visibility.count(ns, filter), std::ssize(expected)) << filter;
    }

    std::vector<VisibilityRecord> runs;
};

TEST_P(VisibilitySearch, OpenAndClosedRunsAreFoundByAnyConditionNewestFirst) {
    HOLDFAST_CHECK("store 198");
    fill();
    using Run = VisibilityRecord;
    const auto any = [](const Run&) { return true; };
    const auto open = [](const Run& run) { return !run.close_time; };
    const auto closed = [](const Run& run) { return run.close_time.has_value(); };
    const auto workflow = [](const Run& run) { return run.workflow_id == "workflow-3"; };
    const auto type = [](const Run& run) { return run.workflow_type == "refund"; };
    const auto status = [](const Run& run) { return run.status == RunStatus::failed; };
    using Matches = std::function<bool(const Run&)>;
    const std::vector<std::pair<std::string, Matches>> conditions{
        {"WorkflowId = 'workflow-3'", workflow},
        {"WorkflowType = 'refund'", type},
        {"ExecutionStatus = 'Failed'", status}};
    for (const auto& [state, is_so] : {std::pair<std::string, Matches>{"", any},
                                       {"CloseTime IS NULL", open},
                                       {"CloseTime IS NOT NULL", closed}}) {
        expect_found(state, is_so);
        for (const auto& [condition, is_met] : conditions) {
            expect_found(fmt::format("{}{}{}", state, state.empty() ? "" : " AND ", condition),
                         [&](const Run& run) { return is_so(run) && is_met(run); });
        }
    }
    expect_found("WorkflowId = 'nobody'", [](const Run&) { return false; });
}

TEST_P(VisibilitySearch, ConditionsMeetAndMomentsMayBeShared) {
    HOLDFAST_CHECK("store 199");
    fill();
    using Run = VisibilityRecord;
    expect_found("StartTime BETWEEN " + moment(1) + " AND " + moment(3), [](const Run& run) {
        return run.start_time >= minute(1) && run.start_time <= minute(3);
    });
    expect_found(
        "CloseTime >= " + moment(11) + " AND CloseTime <= " + moment(12), [](const Run& run) {
            return run.close_time && *run.close_time >= minute(11) && *run.close_time <= minute(12);
        });
    expect_found("CloseTime IS NULL AND CloseTime > " + moment(0),
                 [](const Run&) { return false; });
    expect_found(
        "WorkflowId = 'workflow-1' AND WorkflowType = 'order' AND ExecutionStatus = "
        "'Completed' AND StartTime >= " +
            moment(1) + " AND CloseTime <= " + moment(12),
        [](const Run& run) {
            return run.workflow_id == "workflow-1" && run.workflow_type == "order" &&
                   run.status == RunStatus::completed && run.start_time >= minute(1) &&
                   run.close_time <= minute(12);
        });
    expect_found("StartTime > '0001-01-01T00:00:00Z' AND ExecutionTime < '9999-12-31T23:59:59Z'",
                 [](const Run&) { return true; });
}

TEST_P(VisibilityStory, ClocksDisagreeAndRunsAreShort) {
    HOLDFAST_CHECK("store 199");
    insert(closed("ended before it began", 9, 3));
    insert(closed("ended as it began", 5, 5));
    insert(run("runs", 1));
    EXPECT_THAT(list("", 1), ElementsAre("runs", "ended as it began", "ended before it began"));
    EXPECT_THAT(list("CloseTime IS NOT NULL AND StartTime >= " + moment(9)),
                ElementsAre("ended before it began"));
    EXPECT_THAT(list("CloseTime = " + moment(5)), ElementsAre("ended as it began"));
}

class VisibilityAttributes : public VisibilityStory {};

TEST_P(VisibilityAttributes, AttributesChangeAndAListHasEachOfItsElements) {
    HOLDFAST_CHECK("store 199");
    VisibilityRecord lists = run("lists", 1);
    lists.search_attributes = {{"tags", {"[\"a\", \"b\"]"}}, {"note", {"\"x\""}}};
    insert(lists);
    insert(run("none", 2));
    EXPECT_THAT(list("tags = 'b'"), ElementsAre("lists"));
    EXPECT_THAT(list("tags != 'b'"), IsEmpty()) << "it has it, and the other run has no tags";
    EXPECT_THAT(list("tags IS NULL"), ElementsAre("none"));
    EXPECT_THAT(list("tags != 'c' AND note IN ('w', 'x', 'y')"), ElementsAre("lists"));
    lists.version = 2;
    lists.search_attributes = {
        {"tags", {"[\"c\"]"}}, {"level", {"3"}}, {"long", {'"' + std::string(300, 'x') + '"'}}};
    EXPECT_TRUE(visibility.replace(lists));
    EXPECT_THAT(list("tags = 'b'"), IsEmpty());
    EXPECT_THAT(list("tags = 'c'"), ElementsAre("lists"));
    EXPECT_THAT(list("level = '3' OR level < 'z' OR level = true"), IsEmpty())
        << "a number is no text and no truth";
    EXPECT_THAT(list("level = 3.0 AND level > 2.5"), ElementsAre("lists"));
    EXPECT_EQ(visibility.find(ns, lists.run), lists);
    EXPECT_THAT(list("long IS NOT NULL"), IsEmpty())
        << "what is too long is kept, but not searched";
    lists.version = 3;
    lists.close_time = minute(7);
    lists.status = RunStatus::completed;
    EXPECT_TRUE(visibility.replace(lists));
    EXPECT_EQ(visibility.count_by_status(ns, "tags = 'c' GROUP BY ExecutionStatus"),
              (std::map<RunStatus, std::int64_t>{{RunStatus::completed, 1}}));
}

TEST_P(VisibilityAttributes, TimesAreTheSameMomentHoweverTheyAreWritten) {
    HOLDFAST_CHECK("store 199");
    VisibilityRecord early = run("early", 1);
    early.search_attributes = {{"due", {R"("2026-01-02T04:00:00+02:00")"}}};  // At two.
    insert(early);
    VisibilityRecord late = run("late", 2);
    late.search_attributes = {{"due", {R"(["2026-01-02T03:00:00Z"])"}}};
    insert(late);
    EXPECT_THAT(list("due = '2026-01-02T02:00:00Z'"), ElementsAre("early"));
    EXPECT_THAT(list("due > '2026-01-02T02:30:00.5Z'"), ElementsAre("late"));
    EXPECT_THAT(list("due <= '2026-01-02T12:00:00+09:00' ORDER BY StartTime"),
                ElementsAre("early", "late"));
    EXPECT_THAT(list("due != '2026-01-02T02:00:00Z'"), ElementsAre("late"));
    EXPECT_THAT(list("due STARTS_WITH '2026-01-02T04'"), ElementsAre("early")) << "as a text";
    EXPECT_EQ(visibility.find(ns, early.run), early) << "it is kept as it was written";
}

TEST_P(VisibilityAttributes, RunsAreCountedByTheDivisionOfTheirNamespace) {
    HOLDFAST_CHECK("store 199");
    insert(run("plain", 1));
    for (const char* id : {"a", "b"}) {
        VisibilityRecord scheduler = closed(id, 2, 3);
        scheduler.search_attributes = {{"TemporalNamespaceDivision", {R"("TemporalScheduler")"}},
                                       {"level", {"3"}}};
        insert(scheduler);
    }
    using Counts = std::map<std::string, std::int64_t>;
    EXPECT_EQ(visibility.count_groups(ns, "GROUP BY TemporalNamespaceDivision"),
              (Counts{{"", 1}, {"TemporalScheduler", 2}}));
    EXPECT_EQ(visibility.count_groups(ns, "level = 3 GROUP BY TemporalNamespaceDivision"),
              (Counts{{"TemporalScheduler", 2}}));
    EXPECT_EQ(visibility.count_groups(ns, "GROUP BY ExecutionStatus"),
              (Counts{{"Running", 1}, {"Completed", 2}}));
    EXPECT_EQ(visibility.count(ns, "GROUP BY TemporalNamespaceDivision"), 3);
    EXPECT_EQ(test::code_of([&] { (void)visibility.count_groups(ns, "level = 3"); }),
              Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] {
                  (void)visibility.count_by_status(ns, "GROUP BY TemporalNamespaceDivision");
              }),
              Code::invalid_argument);
}

TEST_P(VisibilityAttributes, ANameOfEveryRunIsNoNameOfAnAttribute) {
    VisibilityRecord named = run("named", 1);
    for (const char* name : {"WorkflowId", "TemporalStartTime"}) {
        named.search_attributes = {{name, {R"("x")"}}};
        EXPECT_EQ(test::code_of([&] { visibility.insert(named); }), Code::invalid_argument) << name;
    }
    named.search_attributes = {{"workflowid", {R"("x")"}}, {"ScheduleId", {R"("y")"}}};
    insert(named);
    insert(run("temporal-sys-scheduler:y", 2));
    EXPECT_THAT(list("`workflowid` = 'x' AND `ScheduleId` = 'y'"), ElementsAre("named"));
    EXPECT_THAT(list("ScheduleId = 'y'"), ElementsAre("temporal-sys-scheduler:y"));
}

TEST_P(VisibilityAttributes, TheLongestNameAndValueFitTheIndex) {
    const std::string name(attribute_name_bytes_max, 'n');
    const std::string value(searched_value_bytes_max, 'v');
    VisibilityRecord longest = run("longest", 1);
    longest.search_attributes = {{name, {'"' + value + '"'}}};
    insert(longest);
    EXPECT_THAT(list(fmt::format("{} = '{}'", name, value)), ElementsAre("longest"));
    longest.search_attributes = {{name + "n", {"1"}}};
    EXPECT_EQ(test::code_of([&] { visibility.insert(longest); }), Code::invalid_argument);
}

// Each of these texts is a moment, which takes two rows.
TEST_P(VisibilityAttributes, AsManyValuesAsARunMayHaveAreReplacedAtOnce) {
    const auto moments = [](int year) {
        std::string all;
        for (std::size_t i = 0; i < attribute_values_max; ++i) {
            all += fmt::format(
                "{}\"{}-01-01T00:{:02}:{:02}Z\"", all.empty() ? "[" : ",", year, i / 60, i % 60);
        }
        return all + "]";
    };
    VisibilityRecord many = run("many", 1);
    many.search_attributes = {{"seen", {moments(2025)}}};
    insert(many);
    many.version = 7;
    many.search_attributes = {{"seen", {moments(2026)}}};
    EXPECT_TRUE(visibility.replace(many));
    EXPECT_THAT(list("seen = '2026-01-01T00:00:07Z'"), ElementsAre("many"));
    EXPECT_THAT(list("seen < '2026-01-01T00:00:00Z'"), IsEmpty());
    many.version = 8;
    many.search_attributes = {{"seen", {moments(2026)}}, {"one_more", {"1"}}};
    EXPECT_EQ(test::code_of([&] { visibility.replace(many); }), Code::invalid_argument);
}

// Said before anything was tried, and not by the database, which stores no more in a column.
TEST(VisibilityOnDsql, MoreAttributesThanAColumnHoldsAreRefusedAtTheDoor) {
    MigratedDatabase db{test::Backend::dsql};
    Visibility visibility{db};
    VisibilityRecord record{.ns = NamespaceId::random(),
                            .run = RunId::random(),
                            .version = 1,
                            .workflow_id = "order",
                            .workflow_type = "order",
                            .start_time = at(1s),
                            .execution_time = at(1s)};
    const std::size_t quotes_and_name = std::string_view(R"({"note":""})").size();
    record.search_attributes = {
        {"note", {'"' + std::string((1U << 20U) - quotes_and_name + 1, 'x') + '"'}}};
    const auto refused = error_of<TransactionSizeLimit>([&] { visibility.insert(record); });
    EXPECT_EQ(refused.outcome(), Outcome::not_applied);
    EXPECT_EQ(visibility.find(record.ns, record.run), std::nullopt);
    record.search_attributes = {
        {"note", {'"' + std::string((1U << 20U) - quotes_and_name, 'x') + '"'}}};
    EXPECT_TRUE(visibility.insert(record));
}

TEST_P(VisibilityStory, WhatCannotBeMeantIsRefusedAtTheDoor) {
    const auto refuses = [&](const VisibilityRecord& record) {
        return test::code_of([&] { visibility.insert(record); }) == Code::invalid_argument;
    };
    const auto refuses_search = [&](std::string_view filter) {
        return test::code_of([&] { (void)visibility.list(ns, filter, 10); }) ==
               Code::invalid_argument;
    };
    VisibilityRecord bad = run("", 0);
    EXPECT_TRUE(refuses(bad)) << "no id";
    for (const std::string& no_name :
         {std::string(id_bytes_max + 1, 'x'), std::string(1, '\0'), std::string("caf\xE9")}) {
        bad = run("order", 0);
        bad.task_queue = no_name;
        EXPECT_TRUE(refuses(bad)) << no_name.size() << " bytes of a queue's name";
        bad = run("order", 0);
        bad.parent = RelatedRun{.workflow_id = no_name, .run = RunId::random()};
        EXPECT_TRUE(refuses(bad)) << no_name.size() << " bytes of a parent's id";
        bad = run("order", 0);
        bad.root = RelatedRun{.workflow_id = no_name, .run = RunId::random()};
        EXPECT_TRUE(refuses(bad)) << no_name.size() << " bytes of a root's id";
    }
    bad = run("order", 0);
    bad.start_time = at(std::chrono::microseconds::max());
    EXPECT_TRUE(refuses(bad)) << "no such time";
    for (const auto& [name, value] : SearchAttributes{{"a b", {"1"}},
                                                      {"1a", {"1"}},
                                                      {"object", {"{}"}},
                                                      {"nothing", {"null"}},
                                                      {"nested", {"[[1]]"}},
                                                      {"broken", {"\"x"}}}) {
        bad = run("order", 0);
        bad.search_attributes = {{name, value}};
        EXPECT_TRUE(refuses(bad)) << name;
    }
    bad = run("order", 0);
    std::string many = "[0";
    for (int i = 1; i <= 1'000; ++i) {
        many += "," + std::to_string(i);
    }
    bad.search_attributes = {{"many", {many + "]"}}};
    EXPECT_TRUE(refuses(bad));
    EXPECT_TRUE(refuses_search("WorkflowId = "));
    EXPECT_TRUE(refuses_search("GROUP BY ExecutionStatus")) << "runs are listed one by one";
    insert(run("a", 0));
    insert(run("b", 0));
    const auto after = visibility.list(ns, "ORDER BY WorkflowId", 1).next;
    ASSERT_TRUE(after);
    EXPECT_EQ(test::code_of([&] { (void)visibility.list(ns, "", 1, after); }),
              Code::invalid_argument)
        << "a place of another order";
    EXPECT_EQ(test::code_of([&] { (void)visibility.list(ns, {}, 0); }), Code::invalid_argument);
    EXPECT_EQ(visibility.count(ns, {}), 2);
}

INSTANTIATE_TEST_SUITE_P(Every, VisibilityStory, test::every_backend(), test::backend_name);
INSTANTIATE_TEST_SUITE_P(Every, VisibilitySearch, test::every_backend(), test::backend_name);
INSTANTIATE_TEST_SUITE_P(Every, VisibilityAttributes, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
