#include "waiting.hpp"

#include <algorithm>
#include <variant>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace holdfast::flow::test {
namespace {

struct InWords {
    const Event& event;

    std::string operator()(const ActivityScheduled& a) const {
        return fmt::format("the activity '{}' (event {})", a.name, event.id);
    }
    std::string operator()(const TimerCreated&) const {
        return fmt::format("the timer of event {}", event.id);
    }
    std::string operator()(const ChildScheduled& c) const {
        return fmt::format("the child '{}' (event {})", c.instance, event.id);
    }
    std::string operator()(const MessageAwaited& m) const {
        return fmt::format("a message on '{}' (event {})", m.channel, event.id);
    }
    std::string operator()(const SignalAwaited& s) const {
        return fmt::format("the signal '{}' (event {})", s.name, event.id);
    }
    template <class Other>
    std::string operator()(const Other&) const {
        return fmt::format("{} of event {}", kind_name(event.body), event.id);
    }
};

}  // namespace

// Replays the code over its history, and reads what it waits for.
std::string waits_for(Provider& provider,
                      const Registry& registry,
                      const ExecutionLimits& limits,
                      const InstanceInfo& info) {
    const auto program = registry.find_workflow(info.name, info.version);
    LoadedHistory loaded = provider.load_history(info.instance, info.execution);
    if (!program || loaded.events.empty()) {
        return "has not begun";
    }
    Execution execution(info.instance, info.execution, *program, limits);
    execution.load(loaded.events, std::move(loaded.kv));
    (void)execution.turn(info.updated, {});
    std::vector<std::string> words;
    for (const EventId id : execution.open()) {
        const auto event = std::ranges::find(loaded.events, id, &Event::id);
        if (event != loaded.events.end()) {
            words.push_back(std::visit(InWords{*event}, event->body));
        }
    }
    if (info.suspended || words.empty()) {
        return fmt::format("is {}", info.suspended ? "suspended" : to_string(info.status));
    }
    return fmt::format("waits for {}", fmt::join(words, " and "));
}

}  // namespace holdfast::flow::test
