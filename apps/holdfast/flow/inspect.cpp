// The verbs of flow that only look.
#include <algorithm>
#include <span>

#include "cli/terminal.hpp"
#include "flow/access.hpp"
#include "flow/filter.hpp"
#include "flow/flow.hpp"
#include "flow/text.hpp"
#include "flow/timeline.hpp"
#include <fmt/core.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::app {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t id_width = 48;
constexpr std::size_t summary_width = 48;
constexpr std::size_t value_width = 72;
constexpr std::size_t children_max = 20;
constexpr int activities_max = 1'000;
constexpr std::size_t lines_all = 1'000'000;
constexpr milliseconds tail_interval{100};
constexpr milliseconds tail_patience{60'000};  // With a database that went away.

// The options of `list`, and what --where adds to them.
FlowFilter filter_of(const FlowRequest& request) {
    FlowFilter filter = parse_filter(request.where);
    const auto take = [](std::string& condition, const std::string& option, const char* name) {
        if (!condition.empty() && !option.empty()) {
            throw InvalidArgument(
                fmt::format("{} is given in --where and as an option; give it once", name));
        }
        condition = condition.empty() ? option : condition;
    };
    take(filter.status, request.status, "status");
    take(filter.workflow, request.workflow, "workflow");
    take(filter.version, request.version, "version");
    take(filter.prefix, request.prefix, "prefix");
    take(filter.younger_than, request.younger_than, "younger-than");
    take(filter.older_than, request.older_than, "older-than");
    filter.attributes.insert(
        filter.attributes.end(), request.attributes.begin(), request.attributes.end());
    return filter;
}

std::string took(const flow::InstanceInfo& info, flow::Moment now) {
    return elapsed(info.completed.value_or(std::max(now, info.created)) - info.created);
}

std::string_view so_far(const flow::InstanceInfo& info) {
    if (info.completed) {
        return "took";
    }
    return info.status == flow::Status::pending ? "waiting for" : "running for";
}

std::string took(const Step& step, flow::Moment now) {
    return elapsed(now - moment_of(step.begin_ms));
}

void row(std::string& text, std::string_view label, std::string_view value) {
    if (!value.empty()) {
        text += fmt::format("{:<10}  {}\n", label, shortened(value, terminal_width() - 12));
    }
}

// What `show` shows, read once. All of it belongs to one execution.
struct Picture {
    flow::InstanceInfo info;  // As it was at the end of the execution, if that is an earlier one.
    flow::ExecutionId current = 0;
    std::vector<flow::PendingActivity> activities;
    std::map<std::string, flow::KvEntry> kv;
    std::vector<flow::InstanceInfo> children;
    std::size_t children_left_out = 0;
    std::vector<flow::Event> history;
    std::vector<flow::ExecutionInfo> executions;
    flow::Moment now;
};

// The instance as an earlier execution left it, from what is kept of that.
flow::InstanceInfo as_of(flow::InstanceInfo info,
                         const flow::ExecutionInfo& execution,
                         const std::vector<flow::Event>& history) {
    info.execution = execution.execution;
    info.version = execution.version;
    info.status = execution.status;
    info.output = execution.output;
    info.suspended = false;
    info.last_event = execution.last_event;
    info.history_bytes = static_cast<std::int64_t>(flow::encode(history).size());
    info.created = execution.started.value_or(info.created);
    info.completed = execution.completed;
    info.due.reset();
    info.custom_status.reset();
    for (const flow::Event& event : history) {
        if (const auto* started = std::get_if<flow::WorkflowStarted>(&event.body)) {
            info.custom_status = started->status;
        } else if (const auto* updated = std::get_if<flow::StatusUpdated>(&event.body)) {
            info.custom_status = updated->status;
        }
    }
    return info;
}

// Those that the shown execution started.
void add_children(Picture& picture, FlowAccess& flows) {
    for (const std::string& child : flows.client().provider().children(picture.info.instance)) {
        auto info = flows.client().info(child);
        if (!info || !info->parent || info->parent->execution != picture.info.execution) {
            continue;
        }
        if (picture.children.size() == children_max) {
            ++picture.children_left_out;
        } else {
            picture.children.push_back(std::move(*info));
        }
    }
}

Picture picture_of(FlowAccess& flows, const FlowRequest& request) {
    Picture picture;
    picture.info = flows.info(request.id);
    picture.current = picture.info.execution;
    const flow::ExecutionId shown = flows.execution_of(picture.info, request.execution);
    picture.executions = flows.client().executions(request.id);
    picture.history = flows.client().history(request.id, shown);
    picture.now = flows.now();
    if (shown == picture.current) {
        picture.kv = flows.client().kv_all(request.id);
        picture.activities = flows.client().provider().activities(request.id, activities_max);
    } else {
        const auto found =
            std::ranges::find(picture.executions, shown, &flow::ExecutionInfo::execution);
        picture.info = as_of(std::move(picture.info), *found, picture.history);
        picture.now = picture.info.completed.value_or(picture.now);
    }
    add_children(picture, flows);
    return picture;
}

std::string identity_of(const Picture& picture) {
    const flow::InstanceInfo& info = picture.info;
    std::string text = bold(shortened(info.instance, id_width)) + "  " + status_text(info) + "\n";
    row(text, "workflow", info.version.empty() ? info.name : info.name + " " + info.version);
    row(text,
        "execution",
        picture.executions.size() > 1
            ? fmt::format("{} of {}; --execution N shows another", info.execution, picture.current)
            : "");
    row(text,
        "started",
        fmt::format(
            "{} UTC, {} {}", moment_text(info.created), so_far(info), took(info, picture.now)));
    row(text, "schedule", info.cron.value_or(""));
    row(text, "due", info.due ? moment_text(*info.due) + " UTC" : "");
    if (info.blocked) {
        row(text, "blocked", summary_of(info));
        row(text,
            "retry",
            fmt::format("{} tries since {} UTC, again at {} UTC",
                        info.blocked->tries,
                        moment_text(info.blocked->since),
                        moment_text(info.blocked->until)));
    } else if (info.unserved_activity) {
        row(text, "unserved", summary_of(info));
    }
    row(text, "parent", info.parent ? info.parent->instance : "");
    row(text, "status", info.custom_status ? info.custom_status->json : "");
    if (is_final(info.status)) {
        row(text, info.status == flow::Status::completed ? "result" : "failure", summary_of(info));
    }
    row(text, "history", fmt::format("{} events, {} bytes", info.last_event, info.history_bytes));
    for (const auto& [key, entry] : picture.kv) {
        row(text, "kv", fmt::format("{} = {}", key, entry.value.json));
    }
    return text;
}

// An execution that has ended, or was reset, waits for nothing.
bool waits(const Picture& picture) {
    return picture.info.execution == picture.current && !is_final(picture.info.status);
}

std::string wait_of(const Step& step, const Picture& picture) {
    std::string text =
        fmt::format("{} {}, since {}", step.kind, step.name, took(step, picture.now));
    const auto activity = std::ranges::find_if(
        picture.activities,
        [&](const flow::PendingActivity& one) { return one.key.event == step.event; });
    if (activity != picture.activities.end()) {
        text += "; " + attempt_of(*activity);
    }
    return text;
}

std::string text_of(const Picture& picture, const FlowRequest& request) {
    std::string text = identity_of(picture);
    for (const Step& step : steps_of(picture.history)) {
        if (step.fate == Fate::open && waits(picture)) {
            row(text, "waits for", wait_of(step, picture));
        }
    }
    for (const flow::InstanceInfo& child : picture.children) {
        row(text,
            "child",
            fmt::format("{}  {}  {}", child.instance, status_text(child), summary_of(child)));
    }
    if (picture.children_left_out > 0) {
        row(text, "child", fmt::format("and {} more", picture.children_left_out));
    }
    const std::string timeline =
        draw_timeline(picture.history,
                      {.width = terminal_width(),
                       .lines_max = request.all ? lines_all : TimelineOptions{}.lines_max,
                       .blocks = on_terminal(),
                       .now = picture.now});
    return timeline.empty() ? text : text + "\n" + timeline;
}

Json json_of(const Picture& picture) {
    Json json = to_json(picture.info);
    json["current_execution"] = picture.current;
    json["activities"] = Json::array();
    for (const flow::PendingActivity& activity : picture.activities) {
        json["activities"].push_back(to_json(activity));
    }
    json["kv"] = Json::object();
    for (const auto& [key, entry] : picture.kv) {
        json["kv"][key] = payload_json(entry.value.json);
    }
    json["children"] = Json::array();
    for (const flow::InstanceInfo& child : picture.children) {
        json["children"].push_back(to_json(child));
    }
    json["executions"] = Json::array();
    for (const flow::ExecutionInfo& execution : picture.executions) {
        json["executions"].push_back({{"execution", execution.execution},
                                      {"version", execution.version},
                                      {"status", flow::to_string(execution.status)},
                                      {"events", execution.last_event}});
    }
    json["steps"] = Json::array();
    for (const Step& step : steps_of(picture.history)) {
        json["steps"].push_back(to_json(step));
    }
    return json;
}

std::string event_line(const flow::Event& event, std::int64_t begin_ms) {
    const std::string source = event.source == 0 ? "" : fmt::format("of {}", event.source);
    std::string line = fmt::format("{:>6}  {:>11}  {:<19}  {:<7}  {}",
                                   event.id,
                                   "+" + elapsed(milliseconds{event.time_ms - begin_ms}),
                                   flow::kind_name(event.body),
                                   source,
                                   shortened(describe(event.body), value_width));
    line.erase(line.find_last_not_of(' ') + 1);
    return line + "\n";
}

// Prints events that are new since the last call.
class Follower {
public:
    Follower(const Context& context, FlowAccess& flows, const std::string& id)
        : context_(context), flows_(flows), id_(id) {}

    // False once there is nothing more to come.
    [[nodiscard]] bool look() {
        const flow::InstanceInfo info = flows_.info(id_);
        if (execution_ == 0) {
            execution_ = info.execution;
        }
        for (; execution_ < info.execution; ++execution_, last_ = 0) {
            print_new();
        }
        if (info.last_event > last_) {
            print_new();
        }
        failed_ = is_final(info.status) && info.status != flow::Status::completed;
        return !is_final(info.status);
    }
    // Whether it has ended otherwise than by completing.
    [[nodiscard]] bool failed() const noexcept { return failed_; }

private:
    void print_new() {
        const flow::LoadedHistory loaded =
            flows_.client().provider().load_history(id_, execution_, last_);
        if (!loaded.error.empty()) {
            throw Error(Code::internal, Outcome::not_applied, loaded.error);
        }
        std::string text;
        for (const flow::Event& event : loaded.events) {
            begin_ms_ = event.id == 1 ? event.time_ms : begin_ms_;
            last_ = event.id;
            text += context_.json ? to_json(event).dump() + "\n" : event_line(event, begin_ms_);
        }
        print(text);
    }

    const Context& context_;
    FlowAccess& flows_;
    std::string id_;
    flow::ExecutionId execution_ = 0;
    flow::EventId last_ = 0;
    std::int64_t begin_ms_ = 0;
    bool failed_ = false;
};

}  // namespace

int flow_list(const Context& context, const FlowRequest& request) {
    const FlowFilter filter = filter_of(request);
    FlowAccess flows(context);
    flow::ListInstances ask = listing_of(filter, flows);
    ask.limit = request.limit;
    ask.page = request.page;
    const flow::InstancePage page = flows.client().list(ask);
    if (context.json) {
        Json json{{"instances", Json::array()}, {"next", page.next}};
        for (const flow::InstanceInfo& info : page.instances) {
            json["instances"].push_back(to_json(info));
        }
        print(json.dump() + "\n");
        return exit_done;
    }
    const flow::Moment now = flows.now();
    Table table{{{"id"}, {"workflow"}, {"status"}, {"created"}, {"took", Align::right}, {"about"}}};
    for (const flow::InstanceInfo& info : page.instances) {
        table.add({shortened(info.instance, id_width),
                   shortened(info.name, id_width),
                   status_text(info),
                   moment_text(info.created),
                   took(info, now),
                   shortened(summary_of(info), summary_width)});
    }
    print(table.text());
    if (!page.next.empty()) {
        print(fmt::format("more: --page '{}'\n", page.next));
    }
    return exit_done;
}

int flow_show(const Context& context, const FlowRequest& request) {
    FlowAccess flows(context);
    const Picture picture = picture_of(flows, request);
    print(context.json ? json_of(picture).dump() + "\n" : text_of(picture, request));
    return exit_done;
}

int flow_history(const Context& context, const FlowRequest& request) {
    FlowAccess flows(context);
    const flow::InstanceInfo info = flows.info(request.id);
    const flow::ExecutionId execution = flows.execution_of(info, request.execution);
    const std::vector<flow::Event> history = flows.client().history(request.id, execution);
    if (context.json) {
        Json json{{"id", info.instance}, {"execution", execution}, {"events", Json::array()}};
        for (const flow::Event& event : history) {
            json["events"].push_back(to_json(event));
        }
        print(json.dump() + "\n");
        return exit_done;
    }
    std::string text;
    for (const flow::Event& event : history) {
        text += event_line(event, history.front().time_ms);
    }
    print(text);
    return exit_done;
}

int flow_tail(const Context& context, const FlowRequest& request) {
    FlowAccess flows(context);
    Follower follower(context, flows, request.id);
    bool more = follower.look();
    Steady seen = system_clock().steady_now();
    // What another process commits shows only by looking again.
    while (more &&
           system_clock().sleep_until(system_clock().steady_now() + tail_interval, context.stop)) {
        try {
            more = follower.look();
            seen = system_clock().steady_now();
        } catch (const Error& error) {
            // A server that is being restarted comes back, and so does what happened meanwhile.
            if (error.code() != Code::unavailable ||
                system_clock().steady_now() - seen > tail_patience) {
                throw;
            }
        }
    }
    return follower.failed() ? exit_refused : exit_done;
}

int flow_stats(const Context& context, const FlowRequest&) {
    FlowAccess flows(context);
    const flow::SystemStats stats = flows.client().stats();
    const std::initializer_list<std::pair<const char*, std::int64_t>> counts{
        {"instances", stats.instances},
        {"pending", stats.pending},
        {"running", stats.running},
        {"completed", stats.completed},
        {"failed", stats.failed},
        {"cancelled", stats.cancelled},
        {"blocked", stats.blocked},
        {"unserved", stats.unserved},
        {"executions", stats.executions},
        {"events", stats.events},
        {"messages", stats.messages},
        {"activities", stats.activities},
        {"unserved_activities", stats.unserved_activities},
        {"early_mailboxes", stats.early_mailboxes}};
    Json json = Json::object();
    Table table{{{"what"}, {"count", Align::right}}};
    for (const auto& [name, count] : counts) {
        json[name] = count;
        table.add({name, std::to_string(count)});
    }
    json["oldest_mail_ms"] = stats.oldest_mail.count();
    table.add({"oldest mail", elapsed(stats.oldest_mail)});
    print(context.json ? json.dump() + "\n" : table.text());
    return exit_done;
}

}  // namespace holdfast::app
