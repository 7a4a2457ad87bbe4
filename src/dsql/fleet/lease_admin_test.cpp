#include "fleet/fleet_store.hpp"
#include "fleet/test/dynamodb_fixture.hpp"
#include <gtest/gtest.h>

#include <holdfast/dsql/leases.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::dsql {
namespace {

using namespace std::chrono_literals;
using tests::DynamoStory;

class LeaseAdminStory : public DynamoStory {
protected:
    void SetUp() override {
        DynamoStory::SetUp();
        if (emulator) {
            const DynamoOptions usual = options(emulator->url());
            admin =
                std::make_unique<LeaseAdmin>(LeaseAdminOptions{.region = usual.region,
                                                               .dynamodb_endpoint = usual.endpoint,
                                                               .credentials = usual.credentials,
                                                               .poll_every = 1ms});
        }
    }

    void put(int block, const std::string& owner, std::int64_t ends_in) {
        const std::int64_t now = std::chrono::floor<std::chrono::seconds>(system_clock().wall_now())
                                     .time_since_epoch()
                                     .count();
        ASSERT_TRUE(client
                        ->write({.kind = dynamo::Write::Kind::put,
                                 .table = table,
                                 .pk = block_key(endpoint, block),
                                 .item = {{"owner_id", owner},
                                          {"ttl_epoch", now + ends_in},
                                          {"slots", 25},
                                          {"epoch", 1}}},
                                soon(),
                                {})
                        .applied);
    }

    const std::string endpoint = "abc.dsql.us-east-1.on.aws";
    std::unique_ptr<LeaseAdmin> admin;
};

TEST_F(LeaseAdminStory, TablesAreMadeOnceAndAdoptedLater) {
    const TableMade first = admin->setup("leases", soon(), {});
    EXPECT_TRUE(first.created);
    EXPECT_TRUE(first.expiry_enabled);
    const TableMade second = admin->setup("leases", soon(), {});
    EXPECT_FALSE(second.created);
    EXPECT_FALSE(second.expiry_enabled);
    EXPECT_TRUE(admin->show("leases", endpoint, soon(), {}).empty());
}

// Not every part of the service has heard of a table that another part has just made.
TEST_F(LeaseAdminStory, ATableThatIsNotKnownEverywhereYetIsWaitedFor) {
    const DynamoOptions usual = options(faults->url());
    LeaseAdmin hurried({.region = usual.region,
                        .dynamodb_endpoint = usual.endpoint,
                        .credentials = usual.credentials,
                        .poll_every = 1ms});
    const auto unknown = [&] {
        faults->say(400, R"({"__type":"ResourceNotFoundException","message":"not yet"})");
    };
    faults->next(Fault::none, 3);  // Not there, made, active:
    unknown();                     // what about its expiry?
    faults->next(Fault::none);     // It is off,
    unknown();                     // and cannot be switched on.
    const TableMade made = hurried.setup("leases", soon(), {});
    EXPECT_TRUE(made.created);
    EXPECT_TRUE(made.expiry_enabled);
    EXPECT_EQ(client->describe_expiry("leases", soon(), {}), dynamo::ExpiryState::on);
}

TEST_F(LeaseAdminStory, DeadOwnersAreSeenAndTheirBlocksFreed) {
    put(2, "ann", 100);
    put(10, "bob", -31);
    put(3, "cid", -20);  // Late, but clocks may differ.
    put(1, "", -1000);
    const auto blocks = admin->show(table, endpoint, soon(), {});
    ASSERT_EQ(blocks.size(), 4U);
    std::vector<std::string> states;
    for (const BlockSeen& block : blocks) {
        states.push_back(std::to_string(block.block) + " " + to_string(block.state));
    }
    EXPECT_EQ(states, (std::vector<std::string>{"1 free", "2 held", "3 held", "10 dead"}));
    const auto freed = admin->reap(table, endpoint, soon(), {});
    ASSERT_EQ(freed.size(), 1U);
    EXPECT_EQ(freed[0].owner, "bob");
    EXPECT_TRUE(admin->reap(table, endpoint, soon(), {}).empty());
    EXPECT_EQ(holdfast::test::code_of([&] { (void)admin->show("none", endpoint, soon(), {}); }),
              Code::not_found);
}

}  // namespace
}  // namespace holdfast::dsql
