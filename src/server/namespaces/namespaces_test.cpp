#include "namespaces/namespaces.hpp"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <holdfast/store/catalogue.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::server::namespaces {

namespace {

using frontend::NamespaceUse;
using frontend::ResolvedNamespace;
namespace enums = temporal::api::enums::v1;

class RegistryTest : public testing::TestWithParam<test::Backend> {
protected:
    static stored::Info registered() {
        stored::Info info;
        info.set_state(enums::NAMESPACE_STATE_REGISTERED);
        info.mutable_retention()->set_seconds(3600);
        return info;
    }
    static rpc::StatusCode refused(Registry& registry, const std::string& name) {
        const auto answer = registry.resolve(name, NamespaceUse::start);
        const auto* const refusal = std::get_if<rpc::Refusal>(&answer);
        return refusal != nullptr ? refusal->code : rpc::StatusCode{};
    }

    test::Database db{GetParam(), store::schema_part()};
};

TEST_P(RegistryTest, AnOpenRegistryHasTheDefaultNamespaceAndTheSystems) {
    Registry ann(db);
    ann.open();
    const auto id = ann.id_of("default");
    ASSERT_TRUE(id);
    EXPECT_EQ(ann.retention(*id), std::chrono::hours{24});
    EXPECT_EQ(ann.id_of("temporal-system"), system_id);
    EXPECT_EQ(ann.retention(std::string(system_id)), std::chrono::hours{24 * 7});

    Registry bob(db);
    bob.open();
    EXPECT_EQ(bob.id_of("default"), id) << "it is made once";
}

TEST_P(RegistryTest, BeforeItIsReadNoNamespaceIsUnknown) {
    Registry registry(db);
    EXPECT_EQ(refused(registry, "default"), rpc::StatusCode::unavailable);
    registry.open();
    EXPECT_EQ(refused(registry, "default"), rpc::StatusCode{});
    EXPECT_EQ(refused(registry, "nowhere"), rpc::StatusCode::not_found);
}

TEST_P(RegistryTest, ANewNamespaceIsThereAtOnceAndAfterARestart) {
    Registry registry(db);
    registry.open();
    const NamespacePtr made = registry.create("orders", registered());
    const auto found = registry.resolve("orders", NamespaceUse::start);
    EXPECT_EQ(std::get<ResolvedNamespace>(found).id, made->id);
    EXPECT_EQ(registry.name_of(made->id), "orders");
    Registry later(db);
    later.open();
    EXPECT_EQ(later.retention(made->id), std::chrono::hours{1});
}

TEST_P(RegistryTest, ARenamedNamespaceKeepsItsIdAndLeavesItsName) {
    Registry registry(db);
    registry.open();
    const std::string id = registry.create("orders", registered())->id;
    (void)registry.change(id, [](Namespace& made) {
        made.name = "old orders";
        return true;
    });
    EXPECT_FALSE(registry.id_of("orders"));
    EXPECT_EQ(registry.id_of("old orders"), id);
    EXPECT_NE(registry.create("orders", registered())->id, id);
}

TEST_P(RegistryTest, AChangeThatIsNotWantedStoresNothing) {
    Registry registry(db);
    registry.open();
    const std::string id = *registry.id_of("default");
    (void)registry.change(id, [](Namespace& made) {
        made.name = "other";
        return false;
    });
    EXPECT_EQ(registry.name_of(id), "default");
    EXPECT_EQ(
        registry.change("00000000-0000-4000-8000-000000000000", [](Namespace&) { return true; }),
        nullptr);
}

// Bob's change lands between Ann's read and her write.
TEST_P(RegistryTest, OfTwoChangesAtOnceNeitherIsLost) {
    HOLDFAST_CHECK("server F133");
    Registry ann(db);
    Registry bob(db);
    ann.open();
    bob.open();
    const std::string id = *ann.id_of("default");
    bool first = true;
    const NamespacePtr changed = ann.change(id, [&](Namespace& made) {
        if (std::exchange(first, false)) {
            (void)bob.change(id, [](Namespace& his) {
                his.info.set_owner_email("bob@example.com");
                return true;
            });
        }
        made.info.set_description("ann's");
        return true;
    });
    EXPECT_EQ(changed->info.owner_email(), "bob@example.com");
    EXPECT_EQ(changed->info.description(), "ann's");
}

// A file has one process.
class SharedRegistryTest : public RegistryTest {};

TEST_P(SharedRegistryTest, ANamespaceOfAnotherProcessIsSeenAfterARefresh) {
    Registry ann(db);
    Registry bob(db);
    ann.open();
    bob.open();
    const std::string id = bob.create("orders", registered())->id;
    ann.refresh();
    EXPECT_EQ(ann.id_of("orders"), id);
}

INSTANTIATE_TEST_SUITE_P(Every, RegistryTest, test::every_backend(), test::backend_name);
INSTANTIATE_TEST_SUITE_P(Shared,
                         SharedRegistryTest,
                         testing::Values(test::Backend::postgres, test::Backend::dsql),
                         test::backend_name);

}  // namespace

}  // namespace holdfast::server::namespaces
