// Workflows whose code is in the test that needs it, on a runtime that runs on the test's own
// thread with a clock that the test moves.
//
//   code("order", [](Context& ctx, std::string, std::string arg) -> Task<std::string> {
//       std::string paid = co_await ctx.activity<&work>("pay", arg);
//       co_return paid;
//   });
//   start("order", "o-1", "7");
//   run();
//   EXPECT_EQ(result("o-1"), "7");
#pragma once

#include <coroutine>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/test/runtime_fixture.hpp"
#include <gmock/gmock.h>

namespace holdfast::flow::tests {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The code of a workflow: it takes its own name, for again(), and an argument.
using Body = Task<std::string> (*)(Context&, std::string self, std::string arg);
using Work = std::function<std::string(ActivityContext&, const std::string& arg)>;

// What the test in hand has written. Filled before a runtime looks at it.
struct Scripts {
    std::map<std::string, Body, std::less<>> codes;
    std::map<std::string, Work, std::less<>> works;
};
inline Scripts scripts;

// Not a coroutine: it is the test's, from its first line.
inline Workflow<std::string> script(Context& ctx, std::string self, std::string arg) {
    const Body code = scripts.codes.at(self);
    return code(ctx, std::move(self), std::move(arg));
}

// Gives back what it got, unless the test says otherwise.
inline std::string work(ActivityContext& ctx, const std::string& what, const std::string& arg) {
    seen.count(what);
    const auto found = scripts.works.find(what);
    return found == scripts.works.end() ? arg : found->second(ctx, arg);
}

}  // namespace holdfast::flow::tests

HOLDFAST_NAME(holdfast::flow::tests::script, "test.script");
HOLDFAST_NAME(holdfast::flow::tests::work, "test.work");

namespace holdfast::flow::tests {

[[nodiscard]] inline Registry behaviour_registry() {
    Registry registry = test_registry();
    registry.activity<&work>().workflow<&script>();
    return registry;
}

// One process with its store. A second runtime on the same store is a second process.
class Stage {
public:
    explicit Stage(test::Backend backend) : place(backend) { scripts = {}; }

    // --- the code
    void code(std::string name, Body body) { scripts.codes[std::move(name)] = body; }
    void activity(std::string name, Work body) { scripts.works[std::move(name)] = std::move(body); }

    // --- what happens
    void start(const std::string& name, const std::string& id, const std::string& arg = "") {
        client.start<&script>(id, name, arg);
    }
    void run() { current().run_until_idle(); }
    // Time passes, and whatever is due by then is done.
    void advance(std::chrono::microseconds by) {
        place.db.advance_clock(by);
        run();
    }
    void run_script(const std::string& name, const std::string& id, const std::string& arg = "") {
        start(name, id, arg);
        run();
    }
    template <class T>
    void tell(std::string_view id, const Channel<T>& channel, const T& value) {
        client.signal(id, channel, value);
        run();
    }
    // The process is gone, its leases run out, and another one with other code begins.
    void restart(Registry registry, RuntimeOptions options = manual_options()) {
        runtime.reset();
        place.db.advance_clock(1min);
        runtime.emplace(store, std::move(registry), std::move(options));
    }
    void restart() { restart(behaviour_registry()); }

    // --- what became of it
    [[nodiscard]] Status status(std::string_view id) { return info(id).status; }
    [[nodiscard]] InstanceInfo info(std::string_view id) { return client.info(id).value(); }
    // Of an instance that has completed; else what it is.
    [[nodiscard]] std::string result(std::string_view id) {
        const InstanceInfo found = info(id);
        if (found.status == Status::completed) {
            return Codec<std::string>::decode(found.output);
        }
        return is_final(found.status) ? Client::failure_of(found).text()
                                      : std::string(to_string(found.status));
    }
    [[nodiscard]] FailureInfo failure(std::string_view id) { return Client::failure_of(info(id)); }
    [[nodiscard]] std::vector<std::string> kinds(std::string_view id, ExecutionId execution = 0) {
        std::vector<std::string> names;
        for (const Event& event : client.history(id, execution)) {
            names.emplace_back(kind_name(event.body));
        }
        return names;
    }
    template <class E>
    [[nodiscard]] std::vector<E> events(std::string_view id, ExecutionId execution = 0) {
        std::vector<E> found;
        for (const Event& event : client.history(id, execution)) {
            if (const E* body = std::get_if<E>(&event.body)) {
                found.push_back(*body);
            }
        }
        return found;
    }

    StoreFixture place;
    Store& store = *place.store;
    Client client{store};
    std::optional<Runtime> runtime{std::in_place, store, behaviour_registry(), manual_options()};

private:
    [[nodiscard]] Runtime& current() { return runtime.value(); }
};

// On SQLite: what the code does, whatever it is stored in.
class Behaviour : public testing::Test, public Stage {
protected:
    Behaviour() : Stage(test::Backend::sqlite) {}
};

// On every database: what the store has a part in.
class StoredBehaviour : public testing::TestWithParam<test::Backend>, public Stage {
protected:
    StoredBehaviour() : Stage(GetParam()) {}
};

}  // namespace holdfast::flow::tests
