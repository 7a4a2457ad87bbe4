// What people find when they look for executions.
#include <holdfast/store/visibility.hpp>

#include <algorithm>

#include "store_fixture.hpp"

namespace holdfast::store::stories {
namespace {

class VisibilityStory : public testing::TestWithParam<test::Backend> {
public:
    static sql::Timestamp minute(int n) { return at(1'700'000'000s + std::chrono::minutes{n}); }

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
    [[nodiscard]] std::vector<std::string> list(const VisibilityFilter& filter,
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
    EXPECT_THAT(list({.attributes = {{"customer", {"\"bob\""}}}}), IsEmpty());

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
    EXPECT_EQ(db.number("SELECT count(*) FROM visibility_attributes"), 0);

    newer.version = 3;
    newer.search_attributes = all.search_attributes;
    EXPECT_TRUE(visibility.replace(newer));
    visibility.remove(ns, all.run);
    EXPECT_EQ(visibility.find(ns, all.run), std::nullopt);
    EXPECT_EQ(db.number("SELECT count(*) FROM visibility_attributes"), 0);
    EXPECT_NO_THROW(visibility.remove(ns, all.run)) << "what is gone is deleted";
    EXPECT_TRUE(visibility.insert(all)) << "and may come again";
}

// What a search should find, by looking at every run.
bool matches(const VisibilityFilter& filter, const VisibilityRecord& run) {
    const bool wants_closed =
        filter.openness == Openness::closed || filter.closed_from || filter.closed_to;
    return (!wants_closed || run.close_time) &&
           (filter.openness != Openness::open || !run.close_time) &&
           (!filter.workflow_id || *filter.workflow_id == run.workflow_id) &&
           (!filter.workflow_type || *filter.workflow_type == run.workflow_type) &&
           (!filter.status || *filter.status == run.status) &&
           (!filter.started_from || *filter.started_from <= run.start_time) &&
           (!filter.started_to || run.start_time <= *filter.started_to) &&
           (!filter.closed_from || *filter.closed_from <= run.close_time) &&
           (!filter.closed_to || run.close_time <= *filter.closed_to) &&
           std::all_of(filter.attributes.begin(), filter.attributes.end(), [&](const auto& asked) {
               const auto has = run.search_attributes.find(asked.first);
               return has != run.search_attributes.end() && has->second == asked.second;
           });
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
    void expect_found(const VisibilityFilter& filter, std::string_view what) {
        std::vector<VisibilityRecord> expected;
        std::map<RunStatus, std::int64_t> counts;
        for (const VisibilityRecord& run : runs) {
            if (matches(filter, run)) {
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
                    << what << ", pages of " << page_size;
                std::move(page.records.begin(), page.records.end(), std::back_inserter(found));
                after = page.next;
            } while (after);
            EXPECT_EQ(found, expected) << what << ", pages of " << page_size;
        }
        EXPECT_EQ(visibility.count_by_status(ns, filter), counts) << what;
        EXPECT_EQ(visibility.count(ns, filter), std::ssize(expected)) << what;
    }

    std::vector<VisibilityRecord> runs;
};

TEST_P(VisibilitySearch, OpenAndClosedRunsAreFoundByAnyConditionNewestFirst) {
    HOLDFAST_CHECK("store 198");
    fill();
    for (const Openness openness : {Openness::any, Openness::open, Openness::closed}) {
        const auto of = [&](VisibilityFilter filter) {
            filter.openness = openness;
            return filter;
        };
        expect_found(of({}), "all");
        expect_found(of({.workflow_id = "workflow-3"}), "workflow");
        expect_found(of({.workflow_type = "refund"}), "type");
        expect_found(of({.status = RunStatus::failed}), "status");
    }
    expect_found({.workflow_id = "nobody's"}, "a workflow that is not there");
}

TEST_P(VisibilitySearch, ConditionsMeetAndMomentsMayBeShared) {
    HOLDFAST_CHECK("store 199");
    fill();
    expect_found({.started_from = minute(1), .started_to = minute(3)}, "start");
    expect_found({.closed_from = minute(11), .closed_to = minute(12)}, "end");
    expect_found({.openness = Openness::open, .closed_from = minute(0)}, "a contradiction");
    expect_found({.workflow_id = "workflow-1",
                  .workflow_type = "order",
                  .status = RunStatus::completed,
                  .started_from = minute(1),
                  .closed_to = minute(12)},
                 "nearly all");
    const SearchAttributes ann{{"customer", {"\"ann\""}}};
    expect_found({.attributes = ann}, "attribute");
    expect_found({.openness = Openness::closed, .attributes = ann}, "closed with attribute");
    expect_found({.workflow_type = "order",
                  .status = RunStatus::running,
                  .attributes = {{"customer", {"\"ann\""}}, {"level", {"0"}}}},
                 "two attributes");
    expect_found({.workflow_id = "workflow-0", .attributes = {{"level", {"1"}}}},
                 "workflow with attribute");
    expect_found({.attributes = {{"level", {"\"1\""}}}}, "a text is no number");
    expect_found({.started_from = at(std::chrono::microseconds::min()),
                  .closed_to = at(std::chrono::microseconds::max())},
                 "times that no run can have");
}

TEST_P(VisibilityStory, ClocksDisagreeRunsAreShortAndAttributesChange) {
    HOLDFAST_CHECK("store 199");
    insert(closed("ended before it began", 9, 3));
    insert(closed("ended as it began", 5, 5));
    VisibilityRecord lists = run("lists", 1);
    lists.search_attributes = {{"tags", {"[\"a\", \"b\"]"}}, {"note", {"\"x\""}}};
    insert(lists);
    EXPECT_THAT(list({}, 1), ElementsAre("lists", "ended as it began", "ended before it began"));
    EXPECT_THAT(list({.openness = Openness::closed, .started_from = minute(9)}),
                ElementsAre("ended before it began"));
    EXPECT_THAT(list({.closed_from = minute(5), .closed_to = minute(5)}),
                ElementsAre("ended as it began"));

    const auto tagged = [&](std::string value) {
        return list({.attributes = {{"tags", {std::move(value)}}}});
    };
    EXPECT_THAT(tagged("\"b\""), ElementsAre("lists")) << "a list has each of its elements";
    lists.version = 2;
    lists.search_attributes = {{"tags", {"[\"c\"]"}},
                               {"long", {'"' + std::string(300, 'x') + '"'}}};
    EXPECT_TRUE(visibility.replace(lists));
    EXPECT_THAT(tagged("\"b\""), IsEmpty());
    EXPECT_THAT(tagged("\"c\""), ElementsAre("lists"));
    EXPECT_EQ(visibility.find(ns, lists.run), lists) << "what is too long to search by is kept";
    lists.version = 3;
    lists.close_time = minute(7);
    lists.status = RunStatus::completed;
    EXPECT_TRUE(visibility.replace(lists));
    EXPECT_EQ(visibility.count_by_status(ns, {.attributes = {{"tags", {"\"c\""}}}}),
              (std::map<RunStatus, std::int64_t>{{RunStatus::completed, 1}}));
}

TEST_P(VisibilityStory, WhatCannotBeMeantIsRefusedAtTheDoor) {
    const auto refuses = [&](const VisibilityRecord& record) {
        return test::code_of([&] { visibility.insert(record); }) == Code::invalid_argument;
    };
    const auto refuses_search = [&](const VisibilityFilter& filter) {
        return test::code_of([&] { (void)visibility.list(ns, filter, 10); }) ==
               Code::invalid_argument;
    };
    VisibilityRecord bad = run("", 0);
    EXPECT_TRUE(refuses(bad)) << "no id";
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
        EXPECT_TRUE(refuses_search({.attributes = {{name, value}}})) << name;
    }
    bad = run("order", 0);
    std::string many = "[0";
    for (int i = 1; i <= 1'000; ++i) {
        many += "," + std::to_string(i);
    }
    bad.search_attributes = {{"many", {many + "]"}}};
    EXPECT_TRUE(refuses(bad));
    EXPECT_TRUE(refuses_search({.workflow_id = ""}));
    EXPECT_TRUE(refuses_search({.attributes = {{"tags", {"[\"a\"]"}}}}));
    EXPECT_TRUE(refuses_search(
        {.attributes = {{"a", {"1"}}, {"b", {"1"}}, {"c", {"1"}}, {"d", {"1"}}, {"e", {"1"}}}}));
    EXPECT_EQ(test::code_of([&] { (void)visibility.list(ns, {}, 0); }), Code::invalid_argument);
    EXPECT_EQ(visibility.count(ns, {}), 0);
}

INSTANTIATE_TEST_SUITE_P(Every, VisibilityStory, test::every_backend(), test::backend_name);
INSTANTIATE_TEST_SUITE_P(Every, VisibilitySearch, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::stories
