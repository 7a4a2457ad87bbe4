#include <holdfast/store/queue.hpp>

#include "queue/statements.hpp"
#include "test/store_fixture.hpp"

namespace holdfast::store::tests {
namespace {

class QueueStatements : public StatementStory {};

TEST_P(QueueStatements, MessagesAreNumberedWithinTheirQueue) {
    using namespace statements;
    const auto add = [&](int type) {
        return rows(insert_message, type, bytes("message"), "Proto3")[0].get<std::int64_t>(0);
    };
    HOLDFAST_CHECK("store 97");
    HOLDFAST_CHECK("store 91");  // Ids come from the statement: none is given twice.
    EXPECT_EQ(add(1), 0);
    EXPECT_EQ(add(-1), 0);
    EXPECT_EQ(add(1), 1);
    EXPECT_EQ(add(1), 2);
    EXPECT_EQ(add(-1), 1);
    HOLDFAST_CHECK("store 92");
    const auto ids = [&](std::int64_t after, std::int64_t last) {
        std::vector<std::int64_t> found;
        for (const sql::Row row : rows(range_messages, 1, after, last, 100)) {
            found.push_back(row.get<std::int64_t>(0));
            EXPECT_EQ(row.get<sql::Bytes>(1), bytes("message"));
            EXPECT_EQ(row.get<std::string>(2), "Proto3");
        }
        return found;
    };
    EXPECT_THAT(ids(-1, 100), ElementsAre(0, 1, 2));
    EXPECT_THAT(ids(0, 1), ElementsAre(1));
    HOLDFAST_CHECK("store 93");
    EXPECT_EQ(count(delete_message, 1, 7), 0);
    EXPECT_EQ(count(delete_message, 1, 0), 1);
    EXPECT_EQ(count(delete_messages, 1, 5, 9, 100), 0);
    EXPECT_EQ(count(delete_messages, 1, -1, 9, 100), 1) << "all but the highest";
    EXPECT_THAT(ids(-1, 100), ElementsAre(2));
    EXPECT_EQ(count(delete_message, 1, 2), 1);
    EXPECT_THAT(ids(-1, 100), IsEmpty());

    HOLDFAST_CHECK("store 94");
    EXPECT_EQ(count(insert_queue_metadata, 1, bytes("{}"), "Json"), 1);
    EXPECT_EQ(count(insert_queue_metadata, 1, bytes("[]"), "Json"), 0) << "the first one stays";
    HOLDFAST_CHECK("store 95");
    EXPECT_EQ(count(update_queue_metadata, {1}, {0}, bytes("1"), "Json"), 1);
    EXPECT_EQ(count(update_queue_metadata, {1}, {0}, bytes("2"), "Json"), 0);
    EXPECT_EQ(count(update_queue_metadata, {2}, {0}, bytes("2"), "Json"), 0);
    HOLDFAST_CHECK("store 96");
    EXPECT_EQ(locked(lock_queue_metadata, 1)[0].get<std::int64_t>(0), 1);
    EXPECT_EQ(rows(select_queue_metadata, 1)[0].get<sql::Bytes>(1), bytes("1"));
}

INSTANTIATE_TEST_SUITE_P(Every, QueueStatements, test::every_backend(), test::backend_name);

class QueueStory : public testing::TestWithParam<test::Backend> {
public:
    static std::vector<std::int64_t> ids(const std::vector<Message>& messages) {
        std::vector<std::int64_t> found;
        found.reserve(messages.size());
        for (const Message& message : messages) {
            found.push_back(message.id);
        }
        return found;
    }
    MigratedDatabase db{GetParam()};
    Queue live{db, namespace_replication};
    Queue dead{db, namespace_replication, Letters::dead};
    NamedQueues named{db};
    const QueueName orders{.type = 3, .name = "orders"};
};

TEST_P(QueueStory, ClustersSayHowFarTheyHaveRead) {
    EXPECT_THROW(live.enqueue(blob("early")), NotFound);
    for (Queue* queue : {&live, &dead}) {
        queue->init();
        queue->init();
        EXPECT_THAT(queue->ack_levels(), IsEmpty());
        EXPECT_EQ(queue->enqueue(blob("zero")), 0);
        EXPECT_EQ(queue->enqueue(blob("one")), 1);
        EXPECT_EQ(queue->enqueue(blob("two")), 2);
        EXPECT_THAT(queue->read(-1, 1), ElementsAre(Message{.id = 0, .blob = blob("zero")}));
        EXPECT_THAT(ids(queue->read(0, 10)), ElementsAre(1, 2));
        EXPECT_THAT(ids(queue->read(-1, 10, 1)), ElementsAre(0, 1));
        HOLDFAST_CHECK("store 194");
        queue->acknowledge("east", 10);
        queue->acknowledge("east", 20);
        queue->acknowledge("west", 25);
        queue->acknowledge("west", 5);  // Levels never move back.
        EXPECT_EQ(queue->ack_levels(),
                  (std::map<std::string, std::int64_t>{{"east", 20}, {"west", 25}}));
        EXPECT_EQ(queue->remove_range(-1, 100), 2);
        EXPECT_THAT(ids(queue->read(-1, 10)), ElementsAre(2));
        EXPECT_EQ(queue->enqueue(blob("three")), 3) << "ids never go back";
        queue->remove(2);
        EXPECT_THAT(ids(queue->read(-1, 10)), ElementsAre(3));
    }
    EXPECT_EQ(test::code_of([&] { const Queue none(db, QueueType{0}); }), Code::invalid_argument);
}

TEST_P(QueueStory, ANamedQueueIsCreatedOnceAndReadInPages) {
    HOLDFAST_CHECK("store 112");
    const auto unknown = error_of<NotFound>([&] { named.enqueue(orders, blob("x")); });
    EXPECT_THAT(unknown.what(),
                testing::AllOf(testing::HasSubstr("orders"), testing::HasSubstr("3")));
    HOLDFAST_CHECK("store 115");
    EXPECT_THROW(named.remove_up_to(orders, 1), NotFound);
    EXPECT_THROW((void)named.read(orders, 1), NotFound);
    named.create(orders);
    HOLDFAST_CHECK("store 113");
    EXPECT_THAT(error_of<QueueAlreadyExists>([&] { named.create(orders); }).what(),
                testing::AllOf(testing::HasSubstr("orders"), testing::HasSubstr("3")));
    EXPECT_THAT(error_of<InvalidPersistenceRequest>([&] { named.remove_up_to(orders, -1); }).what(),
                testing::AllOf(testing::HasSubstr("-1"), testing::HasSubstr("0")));
    HOLDFAST_CHECK("store 120");
    EXPECT_EQ(named.remove_up_to(orders, 5), 0);
    HOLDFAST_CHECK("store 109");
    HOLDFAST_CHECK("store 110");
    EXPECT_THAT(named.read(orders, 1), IsEmpty());
    EXPECT_EQ(named.enqueue(orders, blob("zero")), 0);
    EXPECT_EQ(named.enqueue(orders, blob("one")), 1);
    EXPECT_THAT(named.read(orders, 1), ElementsAre(Message{.id = 0, .blob = blob("zero")}));
    EXPECT_THAT(ids(named.read(orders, 1, 0)), ElementsAre(1));
    EXPECT_THAT(named.read(orders, 1, 1), IsEmpty());
    HOLDFAST_CHECK("store 111");
    EXPECT_THROW((void)named.read(orders, 0), InvalidPersistenceRequest);
    EXPECT_THROW((void)named.read(orders, 1, -2), InvalidPersistenceRequest);
}

TEST_P(QueueStory, ANamedQueueIsReadFromTheFirstMessageThatWasNotDeleted) {
    HOLDFAST_CHECK("store 116");
    named.create(orders);
    EXPECT_EQ(named.enqueue(orders, blob("zero")), 0);
    EXPECT_EQ(named.enqueue(orders, blob("one")), 1);
    EXPECT_EQ(named.enqueue(orders, blob("two")), 2);
    EXPECT_EQ(named.remove_up_to(orders, 1), 2);
    EXPECT_THAT(ids(named.read(orders, 10)), ElementsAre(2));
    HOLDFAST_CHECK("store 119");
    EXPECT_EQ(named.remove_up_to(orders, 1), 0);
    HOLDFAST_CHECK("store 117");
    EXPECT_EQ(named.remove_up_to(orders, 2), 1);
    EXPECT_THAT(named.read(orders, 10), IsEmpty());
    EXPECT_EQ(named.enqueue(orders, blob("three")), 3);
    HOLDFAST_CHECK("store 107");
    HOLDFAST_CHECK("store 118");
    named.enqueue(orders, blob("four"));
    named.enqueue(orders, blob("five"));
    EXPECT_EQ(named.remove_up_to(orders, 10), 3);
    EXPECT_EQ(db.number("SELECT count(*) FROM queue_messages"), 1) << "the highest stays";
    EXPECT_EQ(named.enqueue(orders, blob("six")), 6);
    EXPECT_THAT(ids(named.read(orders, 10)), ElementsAre(6));
}

// The process was killed before the rows of deleted messages were gone: they are not read again.
TEST_P(QueueStory, MessagesWhoseRowsAreStillThereStayDeleted) {
    named.create(orders);
    for (int i = 0; i < 6; ++i) {
        named.enqueue(orders, blob("m"));
    }
    const std::string text = R"({"partitions": {"0": {"first": 4}}})";
    db.execute("UPDATE queues SET metadata_payload = " +
               (GetParam() == test::Backend::sqlite ? "CAST('" + text + "' AS BLOB)"
                                                    : "convert_to('" + text + "', 'UTF8')"));
    EXPECT_THAT(ids(named.read(orders, 1)), ElementsAre(4));
    EXPECT_THAT(ids(named.read(orders, 10)), ElementsAre(4, 5));
    EXPECT_THAT(ids(named.read(orders, 10, 1)), ElementsAre(4, 5));
    EXPECT_THAT(ids(named.read(orders, 1, 4)), ElementsAre(5));
    EXPECT_EQ(named.list(3, 10).at(0).messages, 2);
    EXPECT_EQ(named.remove_up_to(orders, 4), 1) << "and this takes their rows along";
    EXPECT_EQ(db.number("SELECT count(*) FROM queue_messages"), 1);
}

TEST_P(QueueStory, NamedQueuesAreListedWithWhatTheyHold) {
    HOLDFAST_CHECK("store 121");
    EXPECT_THAT(named.list(3, 10), IsEmpty());
    named.create(orders);
    const auto state = [&] {
        const ListedQueue listed = named.list(3, 10).at(0);
        return std::pair(listed.messages, listed.last_id);
    };
    EXPECT_THAT(state(), testing::Pair(0, -1));
    named.enqueue(orders, blob("m"));
    EXPECT_THAT(state(), testing::Pair(1, 0));
    named.enqueue(orders, blob("m"));
    EXPECT_THAT(state(), testing::Pair(2, 1));
    named.remove_up_to(orders, 0);
    EXPECT_THAT(state(), testing::Pair(1, 1));
    named.remove_up_to(orders, 1);
    EXPECT_THAT(state(), testing::Pair(0, 1));
    named.enqueue(orders, blob("m"));
    EXPECT_THAT(state(), testing::Pair(1, 2));
    named.create({.type = 4, .name = "of another type"});
    for (const std::string name : {"a", "b", "z"}) {
        named.create({.type = 3, .name = name});
    }
    std::vector<std::string> names;
    for (const std::int64_t page : {1, 1, 3}) {
        for (const ListedQueue& listed : named.list(3, page, names.empty() ? "" : names.back())) {
            names.push_back(listed.name);
        }
    }
    EXPECT_THAT(names, ElementsAre("a", "b", "orders", "z"));
    EXPECT_THAT(named.list(3, 1, "z"), IsEmpty());
    HOLDFAST_CHECK("store 122");
    EXPECT_THROW((void)named.list(3, -1), InvalidPersistenceRequest);
    HOLDFAST_CHECK("store 108");  // Pages go on after a name: there is no offset to be negative.

    HOLDFAST_CHECK("store 104");
    const auto spoil = [&](const std::string& text) {
        db.execute("UPDATE queues SET metadata_payload = " +
                   (GetParam() == test::Backend::sqlite ? "CAST('" + text + "' AS BLOB)"
                                                        : "convert_to('" + text + "', 'UTF8')"));
    };
    spoil("{\"partitions\": {}}");
    EXPECT_THAT(error_of<DamagedData>([&] { named.remove_up_to(orders, 1); }).what(),
                testing::HasSubstr("partitions"));
    EXPECT_THAT(error_of<DamagedData>([&] { (void)named.list(3, 10); }).what(),
                testing::HasSubstr("partitions"));
    HOLDFAST_CHECK("store 106");
    spoil("rubbish");
    EXPECT_THROW((void)named.read(orders, 1), DamagedData);
}

// A name is stored as it comes, and looked at by who reads.
TEST_P(QueueStory, AnEncodingThatNobodyKnowsIsToldToWhoReads) {
    HOLDFAST_CHECK("store 114");
    named.create(orders);
    named.enqueue(orders, blob("zero"));
    EXPECT_EQ(named.enqueue(orders, {.data = bytes("one"), .encoding = "Proto9"}), 1);
    named.enqueue(orders, {.data = bytes("two"), .encoding = "Json"});
    EXPECT_THAT(ids(named.read(orders, 1)), ElementsAre(0)) << "what is read before it is";
    const auto of_message = error_of<UnknownEncodingType>([&] { (void)named.read(orders, 10); });
    EXPECT_EQ(of_message.encoding(), "Proto9");
    EXPECT_EQ(of_message.outcome(), Outcome::not_applied);
    EXPECT_THAT(of_message.what(),
                testing::AllOf(testing::HasSubstr("message 1 of queue \"orders\""),
                               testing::HasSubstr("Proto3 and Json")));
    EXPECT_THAT(ids(named.read(orders, 10, 1)), ElementsAre(2)) << "and what comes after it";

    db.execute("UPDATE queues SET metadata_encoding = 'Proto9'");
    HOLDFAST_CHECK("store 106");
    for (const auto& use :
         std::vector<std::function<void()>>{[&] { (void)named.read(orders, 1); },
                                            [&] { (void)named.list(orders.type, 10); },
                                            [&] { named.enqueue(orders, blob("three")); },
                                            [&] { named.remove_up_to(orders, 0); }}) {
        EXPECT_EQ(error_of<UnknownEncodingType>(use).encoding(), "Proto9");
    }
    EXPECT_EQ(db.number("SELECT count(*) FROM queue_messages"), 3) << "nothing was written";
}

INSTANTIATE_TEST_SUITE_P(Every, QueueStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
