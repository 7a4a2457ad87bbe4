#include "fleet/dynamodb.hpp"

#include "fleet/dynamodb_json.hpp"
#include "fleet/test/dynamodb_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using dynamo::Item;
using dynamo::Write;
using holdfast::test::code_of;
using tests::DynamoStory;

Write count_up(const std::string& table, std::int64_t limit) {
    return {.table = table,
            .pk = "counter",
            .update = "ADD #n :one",
            .condition = "attribute_not_exists(#n) OR #n < :limit",
            .names = {{"#n", "count"}},
            .values = {{":one", 1}, {":limit", limit}}};
}

TEST_F(DynamoStory, ItemsAreWrittenUnderConditionsAndReadBack) {
    HOLDFAST_CHECK("connections dist.conditional");
    EXPECT_EQ(client->get(table, "counter", soon(), {}), std::nullopt);
    for (std::int64_t i = 1; i <= 2; ++i) {
        const auto answer = client->write(count_up(table, 2), soon(), {});
        EXPECT_TRUE(answer.applied);
        EXPECT_EQ(dynamo::number(answer.item.value(), "count"), i);
    }
    const auto refused = client->write(count_up(table, 2), soon(), {});
    EXPECT_FALSE(refused.applied);
    EXPECT_EQ(dynamo::number(refused.item.value(), "count"), 2) << "the old item comes along";

    const Write put{.kind = Write::Kind::put,
                    .table = table,
                    .pk = "one",
                    .item = {{"owner", "ann"}, {"n", 7}},
                    .condition = "attribute_not_exists(pk)"};
    EXPECT_TRUE(client->write(put, soon(), {}).applied);
    EXPECT_FALSE(client->write(put, soon(), {}).applied);
    EXPECT_EQ(client->get(table, "one", soon(), {}),
              (Item{{"pk", "one"}, {"owner", "ann"}, {"n", 7}}));
    const Write erase{.kind = Write::Kind::erase, .table = table, .pk = "one"};
    EXPECT_TRUE(client->write(erase, soon(), {}).applied);
    EXPECT_EQ(client->get(table, "one", soon(), {}), std::nullopt);
}

TEST_F(DynamoStory, ATransactionIsAllOrNoneAndItsRepeatNothing) {
    const Write put{.kind = Write::Kind::put,
                    .table = table,
                    .pk = "one",
                    .item = {{"n", 1}},
                    .condition = "attribute_not_exists(pk)"};
    EXPECT_TRUE(client->transact({count_up(table, 9), put}, "token-1", soon(), {}).applied);
    EXPECT_TRUE(client->transact({count_up(table, 9), put}, "token-1", soon(), {}).applied)
        << "the same token is the same transaction";
    const auto refused = client->transact({count_up(table, 9), put}, "token-2", soon(), {});
    EXPECT_FALSE(refused.applied);
    ASSERT_EQ(refused.reasons.size(), 2U);
    EXPECT_EQ(refused.reasons[0].code, "None");
    EXPECT_EQ(refused.reasons[1].code, "ConditionalCheckFailed");
    EXPECT_EQ(dynamo::number(*client->get(table, "counter", soon(), {}), "count"), 1);
}

TEST_F(DynamoStory, ATransactionWhoseAnswerIsLostCountsOnce) {
    faults->next(Fault::lost_answer);
    EXPECT_TRUE(client->transact({count_up(table, 9)}, "token-3", soon(), {}).applied);
    EXPECT_EQ(dynamo::number(*client->get(table, "counter", soon(), {}), "count"), 1);
}

TEST_F(DynamoStory, WhatPassesIsTriedAgainAFewTimes) {
    for (const Fault fault :
         {Fault::throttled, Fault::conflict, Fault::failed, Fault::lost_request}) {
        const int before = faults->requests();
        faults->next(fault, 2);
        EXPECT_TRUE(client->write(count_up(table, 100), soon(), {}).applied);
        EXPECT_EQ(faults->requests() - before, 3);
    }
    faults->next(Fault::throttled, 3);
    EXPECT_EQ(code_of([&] { (void)client->write(count_up(table, 100), soon(), {}); }),
              Code::conflict);
    faults->next(Fault::lost_request, 3);
    EXPECT_EQ(
        holdfast::test::outcome_of([&] { (void)client->write(count_up(table, 100), soon(), {}); }),
        Outcome::unknown);
    EXPECT_EQ(dynamo::number(*client->get(table, "counter", soon(), {}), "count"), 4);
}

// A proxy on the way, or a service in trouble, may say anything. It is a failure like others.
TEST_F(DynamoStory, AnAnswerOfAnotherShapeIsAnError) {
    const auto answers = [&](int status, const char* body, const auto& ask) {
        for (int i = 0; i < 3; ++i) {  // As often as it is tried.
            faults->say(status, body);
        }
        const auto code = code_of([&] { ask(); });
        while (faults->left() > 0) {  // What was an answer at once.
            (void)code_of([&] { (void)client->get(table, "x", soon(), {}); });
        }
        return code;
    };
    const auto get = [&] { (void)client->get(table, "x", soon(), {}); };
    const auto write = [&] { (void)client->write(count_up(table, 9), soon(), {}); };
    const auto transact = [&] {
        (void)client->transact({count_up(table, 9)}, "token", soon(), {});
    };
    const auto scan = [&] { (void)client->scan(table, "a", "", 9, soon(), {}); };
    const auto describe = [&] { (void)client->describe_table(table, soon(), {}); };
    EXPECT_EQ(answers(500, R"({"__type":"a#InternalServerError","message":null})", write),
              Code::unavailable);
    EXPECT_EQ(answers(400, R"({"__type":null,"message":[1]})", write), Code::internal);
    EXPECT_EQ(answers(400, R"(["what"])", write), Code::internal);
    EXPECT_EQ(answers(200, "[]", scan), Code::unavailable);
    EXPECT_EQ(answers(200, "<html>Please log in</html>", write), Code::unavailable);
    EXPECT_EQ(answers(200, R"({"Item":{"pk":{"S":7},"n":{"N":7},"m":"x"}})", get), std::nullopt);
    EXPECT_EQ(answers(200, R"({"Items":[1,null,{"pk":[]}],"LastEvaluatedKey":3})", scan),
              std::nullopt);
    EXPECT_EQ(answers(200, R"({"Items":"none"})", scan), std::nullopt);
    EXPECT_EQ(answers(200, R"({"Table":"x"})", describe), std::nullopt);
    EXPECT_EQ(answers(400,
                      R"({"__type":"TransactionCanceledException",)"
                      R"("CancellationReasons":[{"Code":null,"Item":null},3]})",
                      transact),
              std::nullopt);
}

TEST_F(DynamoStory, TablesAreMadeOnceAndForgetByThemselves) {
    EXPECT_EQ(client->describe_table("other", soon(), {}), dynamo::TableState::absent);
    EXPECT_TRUE(client->create_table("other", soon(), {}));
    EXPECT_FALSE(client->create_table("other", soon(), {}));
    EXPECT_EQ(client->describe_table("other", soon(), {}), dynamo::TableState::active);
    EXPECT_EQ(client->describe_expiry("other", soon(), {}), dynamo::ExpiryState::off);
    client->enable_expiry("other", "ttl_epoch", soon(), {});
    EXPECT_EQ(client->describe_expiry("other", soon(), {}), dynamo::ExpiryState::on);
    EXPECT_EQ(code_of([&] { (void)client->get("nowhere", "x", soon(), {}); }), Code::not_found);
}

TEST_F(DynamoStory, ManyItemsComeInPages) {
    for (int i = 0; i < 7; ++i) {
        const Write put{.kind = Write::Kind::put,
                        .table = table,
                        .pk = (i < 5 ? "a#" : "b#") + std::to_string(i)};
        ASSERT_TRUE(client->write(put, soon(), {}).applied);
    }
    std::set<std::string> found;
    std::string from;
    int pages = 0;
    do {
        const auto page = client->scan(table, "a#", from, 3, soon(), {});
        for (const Item& item : page.items) {
            found.insert(dynamo::text(item, "pk").value());
        }
        from = page.next;
        ++pages;
    } while (!from.empty() && pages < 10);
    EXPECT_EQ(found, (std::set<std::string>{"a#0", "a#1", "a#2", "a#3", "a#4"}));
    EXPECT_GE(pages, 2);
}

TEST_F(DynamoStory, AServiceThatIsAwayIsUnavailableAndThenBack) {
    DynamoClient direct(options(emulator->url()));
    EXPECT_TRUE(direct.write(count_up(table, 9), soon(), {}).applied);
    emulator->stop();
    EXPECT_EQ(code_of([&] { (void)direct.write(count_up(table, 9), soon(), {}); }),
              Code::unavailable);
    emulator->start();
    EXPECT_TRUE(direct.create_table(table, soon(), {}));
    EXPECT_TRUE(direct.write(count_up(table, 9), soon(), {}).applied);
}

TEST(DynamoClient, NeedsARegionAndCredentials) {
    EXPECT_EQ(code_of([] { DynamoClient(DynamoOptions{}); }), Code::invalid_argument);
    EXPECT_EQ(code_of([] { DynamoClient(DynamoOptions{.region = "us-east-1"}); }),
              Code::invalid_argument);
}

TEST(DynamoJson, DatesAndErrorsAreReadOrLeftAlone) {
    EXPECT_EQ(dynamo::parse_http_date("Fri, 13 Feb 2009 23:31:30 GMT"),
              std::chrono::sys_seconds{1'234'567'890s});
    for (const char* broken : {"",
                               "Fri, 13 Feb 2009 23:31:30 CET",
                               "Fri, 13 ebF 2009 23:31:30 GMT",
                               "Fri, 13 Feb 2009 23:61:30 GMT"}) {
        EXPECT_EQ(dynamo::parse_http_date(broken), std::nullopt) << broken;
    }
    EXPECT_EQ(dynamo::error_name({{"__type", "com.amazon#Odd"}}), "Odd");
    EXPECT_EQ(dynamo::error_name({{"__type", "Odd"}}), "Odd");
    EXPECT_EQ(dynamo::error_name(nlohmann::json::array()), "");
}

}  // namespace
}  // namespace holdfast::dsql
