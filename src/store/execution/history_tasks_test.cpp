#include "execution/test/run_fixture.hpp"

namespace holdfast::store::tests {
namespace {

class TaskStory : public RunStory {
public:
    static Task task(Category category, std::int64_t i) {
        return {.key = {.fire = is_scheduled(category) ? at(i * 1s) : sql::Timestamp{}, .id = i},
                .blob = blob("task " + std::to_string(i))};
    }
    static TaskRange range(Category category, std::int64_t min, std::int64_t max) {
        return {.min = task(category, min).key, .max = task(category, max).key};
    }
    // All pages of a range; none may be larger than asked for.
    std::vector<Task> read_all(Category category, TaskRange of, std::int64_t page_size) {
        std::vector<Task> all;
        for (;;) {
            TaskPage page = tasks.read(lease.shard, category, of, page_size);
            EXPECT_LE(std::ssize(page.tasks), page_size);
            all.insert(all.end(), page.tasks.begin(), page.tasks.end());
            if (!page.next) {
                return all;
            }
            of.min = *page.next;
        }
    }

    static constexpr std::array categories{Category::transfer,
                                           Category::timer,
                                           Category::replication,
                                           Category::visibility,
                                           Category::archival,
                                           Category::memory_timer,
                                           Category::outbound};
    HistoryTasks tasks{shards};
};

TEST_P(TaskStory, TasksOfEveryCategoryAreReadInOrderUntilTheyAreComplete) {
    HOLDFAST_CHECK("store 159");
    Tasks one;
    for (const Category category : categories) {
        one[category] = {task(category, 5)};
    }
    tasks.add(lease, one);
    for (const Category category : categories) {
        EXPECT_EQ(read_all(category, range(category, 0, 100), 10), one[category]);
        tasks.complete(lease, category, one[category][0].key);
        tasks.complete(lease, category, one[category][0].key);
        EXPECT_THAT(read_all(category, range(category, 0, 100), 10), IsEmpty());
    }

    HOLDFAST_CHECK("store 160");
    Tasks many;
    for (const Category category : categories) {
        for (std::int64_t i = 20; i > 0; --i) {
            many[category].push_back(task(category, i));
        }
    }
    tasks.add(lease, many);
    for (const Category category : categories) {
        std::ranges::reverse(many[category]);
        for (const auto& [min, max, page] : {std::tuple{0, 100, 1},
                                             {0, 21, 7},
                                             {1, 21, 20},
                                             {3, 9, 2},
                                             {3, 9, 6},
                                             {3, 9, 100},
                                             {20, 21, 1},
                                             {7, 7, 5}}) {
            std::vector<Task> expected;
            for (const Task& each : many[category]) {
                if (each.key.id >= min && each.key.id < max) {
                    expected.push_back(each);
                }
            }
            EXPECT_EQ(read_all(category, range(category, min, max), page), expected);
        }
        EXPECT_EQ(tasks.complete_range(lease, category, range(category, 1, 11)), 10);
        EXPECT_EQ(read_all(category, range(category, 0, 100), 50).size(), 10U);
        EXPECT_EQ(tasks.complete_range(lease, category, range(category, 0, 100)), 10);
        EXPECT_THAT(read_all(category, range(category, 0, 100), 50), IsEmpty());
    }
}

TEST_P(TaskStory, TasksThatFireAtOneMomentAreOrderedByTheirIds) {
    HOLDFAST_CHECK("store 161");
    Tasks both;
    for (const std::int64_t id : {9, 2, 5}) {
        both[Category::timer].push_back({.key = {.fire = at(7s), .id = id}, .blob = blob("task")});
    }
    tasks.add(lease, both);
    const TaskRange all{.min = {.fire = at(0s), .id = 0}, .max = {.fire = at(8s), .id = 0}};
    std::vector<std::int64_t> ids;
    for (const Task& each : read_all(Category::timer, all, 1)) {
        ids.push_back(each.key.id);
    }
    EXPECT_THAT(ids, ElementsAre(2, 5, 9));
    EXPECT_THROW((void)tasks.read(lease.shard, Category::timer, all, 0), InvalidPersistenceRequest);
}

// Behind the last id of a moment is the next moment: a page that begins there ends.
TEST_P(TaskStory, TheLastIdOfAMomentIsReadOnce) {
    constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
    const Tasks two{{Category::timer,
                     {{.key = {.fire = at(7s), .id = last}, .blob = blob("task")},
                      {.key = {.fire = at(7s) + 1us, .id = -5}, .blob = blob("task")}}}};
    tasks.add(lease, two);
    TaskRange all{.min = {.fire = at(0s), .id = 0}, .max = {.fire = at(8s), .id = 0}};
    const TaskPage first = tasks.read(lease.shard, Category::timer, all, 1);
    EXPECT_EQ(first.tasks.at(0).key.id, last);
    all.min = first.next.value();
    const TaskPage second = tasks.read(lease.shard, Category::timer, all, 1);
    EXPECT_EQ(second.tasks.at(0).key, (TaskKey{.fire = at(7s) + 1us, .id = -5}));
    all.min = second.next.value();
    EXPECT_THAT(tasks.read(lease.shard, Category::timer, all, 1).tasks, IsEmpty());
}

TEST_P(TaskStory, AFormerOwnerAddsNoTask) {
    HOLDFAST_CHECK("store 163");
    const Tasks one{{Category::transfer, {task(Category::transfer, 1)}}};
    EXPECT_THROW(tasks.add(stale, one), ShardOwnershipLost);
    EXPECT_THAT(read_all(Category::transfer, range(Category::transfer, 0, 9), 9), IsEmpty());
    // Nor does one add half of them: the second is there already.
    tasks.add(lease, one);
    const Tasks two{
        {Category::transfer, {task(Category::transfer, 2), task(Category::transfer, 1)}}};
    EXPECT_EQ(test::code_of([&] { tasks.add(lease, two); }), Code::already_exists);
    EXPECT_THAT(read_all(Category::transfer, range(Category::transfer, 0, 9), 9), SizeIs(1));
}

TEST_P(TaskStory, ALetterThatCannotBeDeliveredIsKeptOnce) {
    HOLDFAST_CHECK("store 162");
    const Task letter = task(Category::replication, 3);
    EXPECT_TRUE(tasks.is_dlq_empty(lease.shard, "east", 0));
    tasks.put_to_dlq(lease, "east", letter);
    tasks.put_to_dlq(lease, "east", letter);
    EXPECT_FALSE(tasks.is_dlq_empty(lease.shard, "east", 3));
    EXPECT_TRUE(tasks.is_dlq_empty(lease.shard, "east", 4));
    EXPECT_TRUE(tasks.is_dlq_empty(lease.shard, "west", 0));
    const TaskRange all = range(Category::replication, 0, 100);
    EXPECT_THAT(tasks.read_dlq(lease.shard, "east", all, 10).tasks, ElementsAre(letter));
    tasks.delete_from_dlq(lease, "east", 3);
    EXPECT_TRUE(tasks.is_dlq_empty(lease.shard, "east", 0));
    tasks.put_to_dlq(lease, "east", letter);
    EXPECT_EQ(tasks.delete_range_from_dlq(lease, "east", all), 1);
}

INSTANTIATE_TEST_SUITE_P(Every, TaskStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
