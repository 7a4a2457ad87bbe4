// Namespaces, clusters, members and endpoints.
#include <holdfast/store/cluster.hpp>

#include "cluster/statements_namespace.hpp"
#include "id_digest.hpp"
#include "test/store_fixture.hpp"

#include <holdfast/store/namespace.hpp>
#include <holdfast/store/nexus.hpp>

namespace holdfast::store::tests {
namespace {

class NamespaceStatements : public StatementStory {};

TEST_P(NamespaceStatements, ANamespaceIsOneRowUnderItsIdAndItsName) {
    using namespace statements;
    const Uuid id = Uuid::v4();
    const Uuid other = Uuid::v4();
    const auto insert = [&](const Uuid& which, std::string_view name) {
        return count(
            insert_namespace, which, key_digest(name), name, 1, bytes("info"), "Proto3", false);
    };
    const auto update = [&](const Uuid& which, std::string_view name) {
        return count(
            update_namespace, which, key_digest(name), name, 1, bytes("newer"), "Json", true);
    };
    HOLDFAST_CHECK("store 81");
    EXPECT_EQ(insert(id, "a"), 1);
    HOLDFAST_CHECK("store 82");
    EXPECT_EQ(test::code_of([&] { insert(id, "b"); }), Code::already_exists);
    EXPECT_EQ(test::code_of([&] { insert(other, "a"); }), Code::already_exists);
    EXPECT_EQ(test::code_of([&] { insert(id, "a"); }), Code::already_exists);
    HOLDFAST_CHECK("store 83");
    const auto row = [](const sql::Rows& found) {
        return found[0].as<Uuid, std::string, std::int64_t, sql::Bytes, std::string, bool>();
    };
    const auto before = std::tuple(id, "a", 1, bytes("info"), "Proto3", false);
    EXPECT_EQ(row(rows(select_namespace, id)), before);
    EXPECT_EQ(row(rows(select_namespace_by_name, key_digest("a"))), before);
    HOLDFAST_CHECK("store 84");
    EXPECT_EQ(update(id, "a"), 1) << "with the stamp it has";
    HOLDFAST_CHECK("store 85");
    EXPECT_EQ(update(other, "b"), 0);
    const auto after = std::tuple(id, "a", 1, bytes("newer"), "Json", true);
    EXPECT_EQ(row(rows(select_namespace, id)), after);
    EXPECT_EQ(row(rows(select_namespace_by_name, key_digest("a"))), after);
    HOLDFAST_CHECK("store 87");
    EXPECT_EQ(insert(other, "b"), 1);
    std::set<Uuid> seen;
    Uuid last;
    for (int page = 0; page < 2; ++page) {
        const sql::Rows found = rows(page_of_namespaces, last, 1);
        ASSERT_EQ(found.size(), 1U);
        last = found[0].get<Uuid>(0);
        seen.insert(last);
    }
    EXPECT_THAT(seen, UnorderedElementsAre(id, other));
    HOLDFAST_CHECK("store 86");
    EXPECT_EQ(count(delete_namespace, id), 1);
    EXPECT_TRUE(rows(select_namespace, id).empty());
    EXPECT_TRUE(rows(select_namespace_by_name, key_digest("a")).empty());
    EXPECT_EQ(count(delete_namespace_by_name, key_digest("b"), "b"), 1);
    EXPECT_TRUE(rows(select_namespace, other).empty());
    EXPECT_TRUE(rows(select_namespace_by_name, key_digest("b")).empty());
}

TEST_P(NamespaceStatements, OnlyTheCounterIsAFence) {
    using namespace statements;
    HOLDFAST_CHECK("store 88");
    EXPECT_EQ(locked(lock_namespace_metadata, 54321)[0].get<std::int64_t>(0), 1);
    EXPECT_EQ(rows(select_namespace_metadata)[0].get<std::int64_t>(0), 1);
    HOLDFAST_CHECK("store 90");
    EXPECT_EQ(count(update_namespace_metadata, {54321}, {7}), 0);
    HOLDFAST_CHECK("store 89");
    EXPECT_EQ(count(update_namespace_metadata, {54321}, {1}), 1);
    EXPECT_EQ(rows(select_namespace_metadata)[0].get<std::int64_t>(0), 2);
}

INSTANTIATE_TEST_SUITE_P(Every, NamespaceStatements, test::every_backend(), test::backend_name);

class ClusterStory : public testing::TestWithParam<test::Backend> {
public:
    Namespace named(std::string name) {
        return {.id = NamespaceId::random(), .name = std::move(name), .info = blob("info")};
    }
    MigratedDatabase db{GetParam()};
    Namespaces namespaces{db};
    Cluster cluster{db};
    NexusEndpoints endpoints{db};
};

TEST_P(ClusterStory, ANamespaceHasAnIdAndANameOfItsOwnAndEveryChangeIsCounted) {
    HOLDFAST_CHECK("store 181");
    const Namespace a = named("a");
    namespaces.create(a);
    Namespace stored = a;
    stored.notification_version = 1;
    EXPECT_EQ(namespaces.find(a.id), stored);
    EXPECT_EQ(namespaces.find("a"), stored);
    const Namespace same_name = named("a");
    EXPECT_THROW(namespaces.create(same_name), NamespaceAlreadyExists);
    Namespace same_id = named("other");
    same_id.id = a.id;
    EXPECT_THROW(namespaces.create(same_id), NamespaceAlreadyExists);
    EXPECT_EQ(namespaces.find(same_name.id), std::nullopt);
    EXPECT_EQ(namespaces.find("a"), stored);
    HOLDFAST_CHECK("store 182");  // To ask by both or by neither does not compile.
    EXPECT_EQ(namespaces.find("unknown"), std::nullopt);

    HOLDFAST_CHECK("store 187");
    const Namespace b = named("b");
    namespaces.create(b);
    EXPECT_EQ(namespaces.notification_version(), 3);
    Namespace change = stored;
    change.info = blob("newer");
    change.notification_version = 3;
    namespaces.update(change);
    EXPECT_EQ(namespaces.find("a"), change);
    HOLDFAST_CHECK("store 185");
    EXPECT_EQ(namespaces.notification_version(), 4);
    HOLDFAST_CHECK("store 186");
    EXPECT_EQ(test::code_of([&] { namespaces.update(change); }), Code::condition_failed);
    EXPECT_EQ(test::outcome_of([&] { namespaces.update(change); }), Outcome::not_applied);
    Namespace renamed = change;
    renamed.notification_version = 4;
    renamed.name = "b";
    EXPECT_EQ(test::code_of([&] { namespaces.update(renamed); }), Code::condition_failed);
    EXPECT_EQ(namespaces.find("a"), change);
    EXPECT_EQ(namespaces.find("b").value().id, b.id);
    renamed.name = "c";
    namespaces.update(renamed);
    EXPECT_EQ(namespaces.find("a"), std::nullopt);
    EXPECT_EQ(namespaces.find("c"), renamed);
    renamed.notification_version = 5;
    namespaces.update(renamed);  // To its own name.

    HOLDFAST_CHECK("store 188");
    Namespace missing = named("missing");
    missing.notification_version = 6;
    EXPECT_THROW(namespaces.update(missing), NotFound);
    EXPECT_EQ(namespaces.find("missing"), std::nullopt);
    namespaces.remove("b");
    namespaces.remove("b");
    EXPECT_EQ(namespaces.find(b.id), std::nullopt);
    HOLDFAST_CHECK("store 189");
    namespaces.create(named("d"));
    const auto first = namespaces.list(1);
    ASSERT_EQ(first.size(), 1U);
    const auto second = namespaces.list(1, first[0].id);
    ASSERT_EQ(second.size(), 1U);
    EXPECT_THAT((std::set{first[0].name, second[0].name}), UnorderedElementsAre("c", "d"));
    EXPECT_THAT(namespaces.list(1, second[0].id), IsEmpty());
    namespaces.remove(a.id);
    namespaces.remove(a.id);
    EXPECT_THAT(namespaces.list(10), SizeIs(1));
}

// What every host of a service does when it starts: it makes the namespace, or finds it made.
TEST_P(ClusterStory, TheNamespaceOfTheSystemIsMadeOnceHoweverManyStart) {
    HOLDFAST_CHECK("store 190");
    const auto start = [&](std::string_view host) {
        Namespace system = named("temporal-system");
        system.info = blob(host);
        try {
            namespaces.create(system);
        } catch (const NamespaceAlreadyExists& error) {
            EXPECT_EQ(error.outcome(), Outcome::not_applied);
        }
        return namespaces.find("temporal-system").value();
    };
    const Namespace made = start("first");
    const std::int64_t version = namespaces.notification_version();
    EXPECT_EQ(made.info, blob("first"));
    for (const std::string_view host : {"second", "first", "third"}) {
        EXPECT_EQ(start(host), made) << "who comes later finds it as it was made";
    }
    EXPECT_EQ(namespaces.notification_version(), version) << "and nobody is told of a change";
    EXPECT_THAT(namespaces.list(10), ElementsAre(made));

    // It was changed since; another start keeps that change.
    Namespace changed = made;
    changed.info = blob("configured");
    changed.notification_version = version;
    namespaces.update(changed);
    EXPECT_EQ(start("restarted"), changed);
}

TEST_P(ClusterStory, AClustersMetadataAreReplacedByWhoKnowsTheirVersion) {
    HOLDFAST_CHECK("store 192");
    EXPECT_EQ(cluster.find("east"), std::nullopt);
    EXPECT_THROW(cluster.save("east", {.blob = blob("info"), .version = 3}), ConditionFailed);
    cluster.save("east", {.blob = blob("one"), .version = 0});
    EXPECT_EQ(cluster.find("east"), (ClusterMetadata{.blob = blob("one"), .version = 1}));
    EXPECT_THROW(cluster.save("east", {.blob = blob("x"), .version = 0}), ConditionFailed);
    cluster.save("east", {.blob = blob("two"), .version = 1});
    EXPECT_EQ(cluster.find("east"), (ClusterMetadata{.blob = blob("two"), .version = 2}));
    cluster.save("west", {.blob = blob("w"), .version = 0});
    cluster.save("north", {.blob = blob("n"), .version = 0});
    std::vector<std::string> names;
    for (std::string last;;) {
        const auto page = cluster.list(1, last);
        if (page.empty()) {
            break;
        }
        last = page[0].first;
        names.push_back(last);
    }
    EXPECT_THAT(names, ElementsAre("east", "north", "west"));
    cluster.remove("east");
    cluster.remove("east");
    EXPECT_EQ(cluster.find("east"), std::nullopt);
}

TEST_P(ClusterStory, AHostIsAMemberAsLongAsItSaysSo) {
    HOLDFAST_CHECK("store 191");
    EXPECT_THAT(cluster.members({}, 10), IsEmpty());
    Member ann{.host = HostId::random(),
               .rpc_address = "10.0.0.1",
               .rpc_port = 7'233,
               .role = Role::frontend,
               .session_start = at(1'000s)};
    const Member bob{.host = HostId::random(),
                     .rpc_address = "10.0.0.2",
                     .rpc_port = 7'234,
                     .role = Role::history,
                     .session_start = at(2'000s)};
    cluster.heartbeat(ann, 10s);
    db.advance_clock(5s);
    cluster.heartbeat(bob, 10s);
    const auto hosts = [&](const MemberFilter& filter) {
        std::set<HostId> found;
        for (const Member& member : cluster.members(filter, 100)) {
            found.insert(member.host);
        }
        return found;
    };
    EXPECT_THAT(hosts({}), UnorderedElementsAre(ann.host, bob.host));
    EXPECT_THAT(hosts({.host = ann.host}), UnorderedElementsAre(ann.host));
    EXPECT_THAT(hosts({.rpc_address = "10.0.0.2"}), UnorderedElementsAre(bob.host));
    EXPECT_THAT(hosts({.role = Role::history}), UnorderedElementsAre(bob.host));
    EXPECT_THAT(hosts({.role = Role::worker}), IsEmpty());
    EXPECT_THAT(hosts({.heartbeat_within = 4s}), UnorderedElementsAre(bob.host));
    EXPECT_THAT(hosts({.session_started_after = at(2'000s)}), UnorderedElementsAre(bob.host));
    const Member seen = cluster.members({.host = bob.host}, 1)[0];
    EXPECT_EQ(seen.rpc_port, bob.rpc_port);
    EXPECT_EQ(seen.session_start, bob.session_start);
    EXPECT_EQ(seen.record_expiry - seen.last_heartbeat, 10s);
    db.advance_clock(6s);  // Ann has said nothing for eleven seconds.
    EXPECT_THAT(hosts({}), UnorderedElementsAre(bob.host));
    EXPECT_EQ(cluster.prune(10), 1);
    EXPECT_EQ(cluster.prune(10), 0);
    for (const std::chrono::microseconds ttl :
         {0us, -1us, std::chrono::microseconds{member_ttl_max} + 1us}) {
        EXPECT_EQ(test::code_of([&] { cluster.heartbeat(ann, ttl); }), Code::invalid_argument);
    }

    std::set<HostId> everybody;
    for (int i = 0; i < 100; ++i) {
        ann.host = HostId::random();
        cluster.heartbeat(ann, 60s);
        everybody.insert(ann.host);
    }
    std::set<HostId> paged;
    HostId last;
    for (;;) {
        const auto page = cluster.members({.role = Role::frontend}, 9, last);
        for (const Member& member : page) {
            EXPECT_TRUE(paged.insert(member.host).second);
            last = member.host;
        }
        if (page.size() < 9) {
            break;
        }
    }
    EXPECT_EQ(paged, everybody);
}

TEST_P(ClusterStory, AnEndpointIsChangedByWhoKnowsItAndTheTable) {
    HOLDFAST_CHECK("store 195");
    const auto message = [](const std::function<void()>& body) {
        const auto error = error_of<ConditionFailed>(body);
        EXPECT_EQ(error.outcome(), Outcome::not_applied);
        return std::string(error.what());
    };
    const std::string table_mismatch = "nexus endpoints table version mismatch";
    const std::string endpoint_mismatch = "nexus endpoint version mismatch";
    Endpoint one{.id = EndpointId::random(), .blob = blob("one"), .version = 0};
    EXPECT_EQ(endpoints.find(one.id), std::nullopt);
    EXPECT_EQ(endpoints.list(10).table_version, 0);
    EXPECT_EQ(message([&] { endpoints.put(one, 1); }), table_mismatch);
    endpoints.put(one, 0);
    EXPECT_EQ(message([&] { endpoints.put(one, 0); }), table_mismatch);
    EXPECT_EQ(message([&] { endpoints.put(one, 1); }), endpoint_mismatch);
    one.version = 1;
    EXPECT_EQ(endpoints.find(one.id), one);
    endpoints.put(one, 1);
    EXPECT_EQ(endpoints.find(one.id).value().version, 2);
    one.version = 7;
    EXPECT_EQ(message([&] { endpoints.put(one, 2); }), endpoint_mismatch);
    const Endpoint two{.id = EndpointId::random(), .blob = blob("two"), .version = 0};
    endpoints.put(two, 2);
    const EndpointPage first = endpoints.list(1);
    EXPECT_EQ(first.table_version, 3);
    ASSERT_EQ(first.endpoints.size(), 1U);
    const EndpointPage second = endpoints.list(1, first.endpoints[0].id, 3);
    ASSERT_EQ(second.endpoints.size(), 1U);
    EXPECT_LT(first.endpoints[0].id, second.endpoints[0].id);
    EXPECT_THAT(endpoints.list(1, second.endpoints[0].id, 3).endpoints, IsEmpty());
    EXPECT_THAT(endpoints.list(0).endpoints, IsEmpty());
    EXPECT_EQ(message([&] { (void)endpoints.list(1, {}, 2); }), table_mismatch);
    EXPECT_EQ(message([&] { endpoints.remove(two.id, 2); }), table_mismatch);
    EXPECT_EQ(error_of<NotFound>([&] { endpoints.remove(EndpointId::random(), 3); }).what(),
              std::string("nexus endpoint not found"));
    EXPECT_EQ(endpoints.list(0).table_version, 3);
    endpoints.remove(two.id, 3);
    EXPECT_EQ(endpoints.find(two.id), std::nullopt);
    EXPECT_EQ(endpoints.list(0).table_version, 4);
}

INSTANTIATE_TEST_SUITE_P(Every, ClusterStory, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
