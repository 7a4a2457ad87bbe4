// What a reset would do, for people and for programs.
#include "flow/reset_plan.hpp"

#include <algorithm>
#include <set>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "flow/text.hpp"
#include "flow/timeline.hpp"
#include <fmt/core.h>

#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

constexpr std::size_t lines_max = 40;

// The steps of the current execution, by what becomes of them.
struct Fates {
    std::vector<Step> kept;
    std::vector<Step> again;   // Under way at the point: they begin anew.
    std::vector<Step> undone;  // After the point: they happen again if the code asks for them.
    std::int64_t delivered_again = 0;
};

Fates fates_of(const flow::ResetPlan& plan) {
    Fates fates;
    std::set<flow::EventId> again;
    for (const flow::ActivityTask& task : plan.reset.activities) {
        again.insert(task.key.event);
    }
    std::vector<flow::Event> kept;
    for (const flow::Event& event : plan.reset.next.events) {
        if (event.id <= plan.last_kept) {
            kept.push_back(event);
        }
    }
    for (Step& step : steps_of(kept)) {
        (again.contains(step.event) ? fates.again : fates.kept).push_back(std::move(step));
    }
    for (Step& step : steps_of(plan.cut)) {
        const bool works = step.kind == "activity" || step.kind == "child";
        if (works) {
            fates.undone.push_back(std::move(step));
        }
    }
    fates.delivered_again = std::ranges::count_if(plan.cut, [](const flow::Event& event) {
        return std::holds_alternative<flow::MessageReceived>(event.body) ||
               std::holds_alternative<flow::SignalReceived>(event.body) ||
               std::holds_alternative<flow::UpdateHandled>(event.body);
    });
    return fates;
}

Json json_of(const std::vector<Step>& steps) {
    Json json = Json::array();
    for (const Step& step : steps) {
        json.push_back(to_json(step));
    }
    return json;
}

void add_lines(std::string& text, std::string_view label, const std::vector<Step>& steps) {
    const std::size_t left_out = steps.size() > lines_max ? steps.size() - lines_max : 0;
    if (left_out > 0) {
        text += fmt::format("{:<11}  {} earlier steps\n", label, left_out);
    }
    for (std::size_t i = left_out; i < steps.size(); ++i) {
        const Step& step = steps[i];
        text += fmt::format("{:<11}  event {:<5}  {} {}, {}\n",
                            label,
                            step.event,
                            step.kind,
                            shortened(step.name, lines_max),
                            to_string(step.fate));
    }
}

}  // namespace

int say_plan(const Context& context, const std::string& id, const flow::ResetPlan& plan) {
    const Fates fates = fates_of(plan);
    if (context.json) {
        const Json json{{"id", id},
                        {"dry_run", true},
                        {"execution", plan.reset.next.execution},
                        {"last_kept", plan.last_kept},
                        {"cause", plan.cause ? to_json(*plan.cause) : Json(nullptr)},
                        {"kept", json_of(fates.kept)},
                        {"again", json_of(fates.again)},
                        {"undone", json_of(fates.undone)},
                        {"delivered_again", fates.delivered_again}};
        print(json_line(json) + "\n");
        return exit_done;
    }
    std::string text = fmt::format("{} would continue as execution {} after event {}",
                                   shortened(id, 48),
                                   plan.reset.next.execution,
                                   plan.last_kept);
    text += plan.cause ? fmt::format(", as if event {} had not happened: {} {}\n",
                                     plan.cause->id,
                                     flow::kind_name(plan.cause->body),
                                     shortened(describe(plan.cause->body), 72))
                       : std::string("\n");
    add_lines(text, "kept", fates.kept);
    add_lines(text, "runs again", fates.again);
    add_lines(text, "undone", fates.undone);
    if (fates.delivered_again > 0) {
        text += fmt::format("{:<11}  {} messages\n", "sent again", fates.delivered_again);
    }
    print(text);
    return exit_done;
}

}  // namespace holdfast::app
