// Which code a process has, and which of it a start takes.
#include "behaviour/test/behaviour_fixture.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::flow::tests {
namespace {

std::int64_t twice(std::int64_t n) {
    return n + n;
}
Workflow<std::string> hello_again(Context& ctx, std::string name) {
    std::string text = co_await ctx.activity<&greet>(name + " again");
    co_return text;
}
// Another version of hello, and another workflow.
Workflow<std::string> hello_two(Context& ctx, std::string name) {
    return hello_again(ctx, std::move(name));
}
Workflow<std::string> other(Context& ctx, std::string name) {
    return hello_again(ctx, std::move(name));
}

}  // namespace
}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::twice, "test.twice");
HOLDFAST_NAME(holdfast::flow::tests::hello_two, "test.hello");
HOLDFAST_NAME(holdfast::flow::tests::other, "test.other");

namespace holdfast::flow::tests {
namespace {

const std::string hello_name = "test.hello";

Registry hellos() {
    Registry registry;
    registry.workflow<&hello>("1.0.0").workflow<&hello_two>("2.0.0").activity<&greet>();
    return registry;
}

TEST(Registry, AnEmptyOneHasNothingAndSaysSo) {
    HOLDFAST_CHECK("runtime registry_default");
    HOLDFAST_CHECK("runtime empty_registry_resolution");
    const Registry registry;
    EXPECT_THAT(registry.workflows(), IsEmpty());
    EXPECT_THAT(registry.activities(), IsEmpty());
    EXPECT_THAT(registry.versions("test.hello"), IsEmpty());
    EXPECT_FALSE(registry.has_workflow("test.hello"));
    EXPECT_EQ(registry.version_for_start("test.hello"), std::nullopt);
    EXPECT_EQ(registry.find_workflow("test.hello", "1.0.0"), std::nullopt);
    EXPECT_EQ(registry.find_activity("test.greet"), nullptr);
}

TEST(Registry, ItTellsWhichWorkflowsItHasAndTheirVersions) {
    HOLDFAST_CHECK("runtime orchestration_registry_chained_register");
    HOLDFAST_CHECK("runtime orchestration_registry_list_names");
    HOLDFAST_CHECK("runtime orchestration_registry_has_and_count");
    HOLDFAST_CHECK("runtime orchestration_registry_list_versions");
    HOLDFAST_CHECK("runtime list_versions_ordering");
    HOLDFAST_CHECK("runtime register_default_is_1_0_0_and_list_versions");
    Registry registry = hellos();
    registry.workflow<&other>().activity<&twice>();
    EXPECT_THAT(registry.workflows(), ElementsAre("test.hello", "test.other"));
    EXPECT_TRUE(registry.has_workflow("test.other"));
    EXPECT_FALSE(registry.has_workflow("test.twice")) << "that is an activity";
    EXPECT_THAT(registry.versions("test.hello"), ElementsAre("1.0.0", "2.0.0"));
    EXPECT_THAT(registry.versions("test.other"), ElementsAre("1.0.0")) << "unless told otherwise";
}

TEST(Registry, ItTellsWhichActivitiesItHas) {
    HOLDFAST_CHECK("runtime activity_registry_chained_register");
    HOLDFAST_CHECK("runtime activity_registry_list_names");
    HOLDFAST_CHECK("runtime activity_registry_has");
    HOLDFAST_CHECK("runtime activity_registry_count");
    HOLDFAST_CHECK("runtime register_all");
    Registry registry = hellos();
    registry.workflow<&other>().activity<&twice>();
    EXPECT_THAT(registry.workflows(), SizeIs(2));
    EXPECT_THAT(registry.activities(), ElementsAre("test.greet", "test.twice"));
    EXPECT_NE(registry.find_activity("test.twice"), nullptr);
    EXPECT_EQ(registry.find_activity("test.hello"), nullptr);
}

TEST(Registry, VersionsAreOrderedAsNumbersNotAsText) {
    HOLDFAST_CHECK("runtime register_multiple_versions_latest_is_highest");
    HOLDFAST_CHECK("runtime resolve_version_latest");
    Registry registry;
    registry.workflow<&hello>("1.9.0").workflow<&hello_two>("1.10.0");
    EXPECT_THAT(registry.versions("test.hello"), ElementsAre("1.9.0", "1.10.0"));
    EXPECT_EQ(registry.version_for_start("test.hello"), "1.10.0");
}

TEST(Registry, APinnedVersionIsWhatAStartTakes) {
    HOLDFAST_CHECK("runtime policy_exact_pins_resolve_handler");
    HOLDFAST_CHECK("runtime resolve_version_exact");
    HOLDFAST_CHECK("runtime multiple_policies");
    HOLDFAST_CHECK("runtime resolve_handler_exact_missing_returns_none");
    HOLDFAST_CHECK("runtime resolve_handler_exact_policy_missing_version");
    Registry registry = hellos();
    registry.workflow<&other>("1.0.0").pin("test.hello", "1.0.0");
    EXPECT_EQ(registry.version_for_start("test.hello"), "1.0.0");
    EXPECT_EQ(registry.version_for_start("test.other"), "1.0.0") << "each name has its own policy";
    EXPECT_EQ(registry.find_workflow("test.hello", "1.0.0"), &detail::run_program<&hello>);
    EXPECT_EQ(registry.find_workflow("test.hello", "2.0.0"), &detail::run_program<&hello_two>)
        << "a running execution needs its own";
    EXPECT_EQ(registry.find_workflow("test.hello", "1.5.0"), std::nullopt);
    EXPECT_EQ(registry.find_workflow("test.hello", "latest"), std::nullopt) << "nobody has that";
    // A version that is missing cannot be pinned.
    EXPECT_EQ(test::code_of([&] { registry.pin("test.hello", "1.5.0"); }), Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { registry.pin("test.none", "1.0.0"); }), Code::invalid_argument);
    registry.pin("test.hello", "2.0.0");
    EXPECT_EQ(registry.version_for_start("test.hello"), "2.0.0");
}

TEST(Registry, ItIsAValueThatCanBeExtended) {
    HOLDFAST_CHECK("runtime orchestration_registry_builder_from");
    HOLDFAST_CHECK("runtime activity_registry_from_registry");
    HOLDFAST_CHECK("runtime registry_clone_shares_policy");
    Registry first = hellos();
    first.pin("test.hello", "1.0.0");
    Registry second = first;
    second.workflow<&other>().activity<&twice>();
    EXPECT_THAT(second.workflows(), ElementsAre("test.hello", "test.other"));
    EXPECT_THAT(first.workflows(), ElementsAre("test.hello"));
    EXPECT_THAT(first.activities(), ElementsAre("test.greet"));
    EXPECT_EQ(second.version_for_start("test.hello"), "1.0.0") << "the policy is copied";
    // A value does not change with its copies.
    second.pin("test.hello", "2.0.0");
    EXPECT_EQ(first.version_for_start("test.hello"), "1.0.0");
}

TEST(Registry, TwoAreMergedUnlessBothHaveAName) {
    HOLDFAST_CHECK("runtime orchestration_registry_merge");
    HOLDFAST_CHECK("runtime orchestration_registry_merge_with_chained_register");
    HOLDFAST_CHECK("runtime activity_registry_merge");
    HOLDFAST_CHECK("runtime activity_registry_merge_with_chained_register");
    HOLDFAST_CHECK("runtime activity_registry_introspection_after_merge");
    HOLDFAST_CHECK("runtime activity_registry_merge_duplicate_errors");
    Registry left = hellos();
    Registry right;
    right.workflow<&other>().activity<&twice>();
    left.merge(right).workflow<&chain>().activity<&add>();
    EXPECT_THAT(left.workflows(), ElementsAre("test.chain", "test.hello", "test.other"));
    EXPECT_THAT(left.activities(), ElementsAre("test.add", "test.greet", "test.twice"));
    EXPECT_THAT(left.versions("test.hello"), SizeIs(2));
    Registry same_workflow;
    same_workflow.workflow<&other>("2.0.0");
    EXPECT_EQ(test::code_of([&] { left.merge(same_workflow); }), Code::invalid_argument);
    Registry same_activity;
    same_activity.activity<&twice>();
    EXPECT_EQ(test::code_of([&] { left.merge(same_activity); }), Code::invalid_argument);
}

TEST(Registry, ANameIsRegisteredOnceAndVersionsRise) {
    HOLDFAST_CHECK("runtime activity_registry_builder_detects_duplicates");
    HOLDFAST_CHECK("runtime duplicate_default_version_returns_error");
    HOLDFAST_CHECK("runtime duplicate_specific_version_returns_error");
    HOLDFAST_CHECK("runtime non_monotonic_registration_panics");
    Registry registry = hellos();
    EXPECT_EQ(test::code_of([&] { registry.activity<&greet>(); }), Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { registry.workflow<&hello>(); }), Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { registry.workflow<&hello>("2.0.0"); }), Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { registry.workflow<&hello>("1.5.0"); }), Code::invalid_argument);
    EXPECT_EQ(test::code_of([&] { registry.workflow<&hello>("three"); }), Code::invalid_argument);
    EXPECT_THAT(registry.versions("test.hello"), ElementsAre("1.0.0", "2.0.0")) << "as before";
}

// Libraries offer their registries, and a program puts them together.
TEST(Registry, ALibrarysWorkflowRunsAProgramsActivity) {
    HOLDFAST_CHECK("runtime cross_crate_composition_pattern");
    HOLDFAST_CHECK("runtime activity_register_typed");
    HOLDFAST_CHECK("runtime activity_always_1_0_0_and_latest");
    seen.reset();
    Registry library;
    library.workflow<&hello>();
    Registry program;
    program.activity<&greet>().activity<&twice>();
    Store store("sqlite::memory:");
    Runtime runtime(store, Registry(library).merge(program), manual_options());
    Client client(store);
    client.start<&hello>("ann", "Ann");
    runtime.run_until_idle();
    EXPECT_EQ(*client.result<&hello>("ann", 0ms), "hello Ann");
    // An activity has no versions: there is one of each name, and every workflow gets that one.
    const Registry::Activity* found = program.find_activity("test.twice");
    ASSERT_NE(found, nullptr);
    EXPECT_FALSE(found->transactional);
}

// Time, ids and random numbers are calls of the context, not activities with a reserved prefix, so
// nothing can be overridden.
TEST(Registry, TimeAndChanceNeedNoActivities) {
    HOLDFAST_CHECK("runtime builtins_exist_with_empty_registry");
    HOLDFAST_CHECK("runtime user_cannot_override_builtins");
    HOLDFAST_CHECK("runtime reserved_prefix_rejected");
    seen.reset();
    scripts = {};
    scripts.codes["asks"] = [](Context& ctx, std::string, std::string) -> Task<std::string> {
        const std::string id = ctx.uuid();
        const std::uint64_t number = ctx.random();
        co_return std::to_string(id.size()) + (number != ctx.random() ? " numbers " : " ") +
            (ctx.now() > Moment{} ? "time" : "");
    };
    Registry registry;
    registry.workflow<&script>();
    Store store("sqlite::memory:");
    Runtime runtime(store, registry, manual_options());
    Client client(store);
    client.start<&script>("a", "asks", "");
    runtime.run_until_idle();
    EXPECT_EQ(*client.result<&script>("a", 0ms), "36 numbers time");
    EXPECT_EQ(client.history("a").size(), 2U) << "no round trip, no event";
}

}  // namespace
}  // namespace holdfast::flow::tests
