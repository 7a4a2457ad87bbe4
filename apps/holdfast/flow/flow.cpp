// The verbs of flow that change something.
#include "flow/flow.hpp"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "cli/terminal.hpp"
#include "flow/access.hpp"
#include "flow/bulk.hpp"
#include "flow/reset_plan.hpp"
#include "flow/text.hpp"
#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::app {
namespace {

using std::chrono::milliseconds;

flow::Payload json_value(std::string_view what, const std::string& text) {
    if (!flow::is_json(text)) {
        throw InvalidArgument(
            fmt::format("{} is not JSON: {}; quote a string, as in '\"yes\"'", what, text));
    }
    return flow::Payload{text};
}

// The arguments of a workflow, a query or an update travel as an array.
flow::Payload json_arguments(std::string_view what, const std::string& text) {
    flow::Payload value = json_value(what, text);
    if (text.find_first_not_of(" \t\r\n") == std::string::npos ||
        text[text.find_first_not_of(" \t\r\n")] != '[') {
        throw InvalidArgument(
            fmt::format("{} is not an array of arguments: {}; write '[{}]'", what, text, text));
    }
    return value;
}

flow::DuplicatePolicy policy_named(const std::string& name) {
    if (name == "reject") {
        return flow::DuplicatePolicy::reject;
    }
    if (name == "use-existing") {
        return flow::DuplicatePolicy::use_existing;
    }
    if (name == "restart") {
        return flow::DuplicatePolicy::restart;
    }
    throw InvalidArgument(fmt::format(
        "--on-duplicate '{}' is unknown; choose from reject, use-existing, restart", name));
}

// Between our look and the message the workflow may have ended, or been deleted.
void require_delivered(flow::Delivery delivery, const std::string& id) {
    if (delivery != flow::Delivery::delivered) {
        throw Error(Code::condition_failed,
                    Outcome::not_applied,
                    fmt::format("workflow '{}' has just ended; see holdfast flow show", id));
    }
}

int ask(const Context& context, const FlowRequest& request, bool update) {
    const flow::Payload input = json_arguments("the input", request.input);
    const milliseconds timeout = duration_of("--timeout", request.timeout);
    FlowAccess flows(context);
    if (flows.running(request.id, update ? "update" : "query").suspended) {
        throw Error(Code::condition_failed,
                    Outcome::not_applied,
                    fmt::format("workflow '{}' is suspended and does not answer; resume it with "
                                "holdfast flow resume {}",
                                request.id,
                                request.id));
    }
    try {
        const flow::Payload reply =
            flows.client().ask(request.id, timeout, update, request.name, input);
        return say(context, {{"id", request.id}, {"reply", payload_json(reply.json)}}, reply.json);
    } catch (const flow::Failure& failure) {
        throw Error(Code::condition_failed, Outcome::not_applied, failure.info().text());
    } catch (Error& error) {
        if (error.code() == Code::deadline) {
            error.add_context(
                "no worker answered; start one, as with the verb `run` of flow::command_line");
        }
        throw;
    }
}

std::string read_all(const std::string& path) {
    if (path == "-") {
        return {std::istreambuf_iterator<char>(std::cin), {}};
    }
    std::ifstream file(path, std::ios::binary);
    std::string text;
    const bool readable = !std::filesystem::is_directory(path);
    if (readable) {
        text.assign(std::istreambuf_iterator<char>(file), {});
    }
    if (!file || !readable) {
        throw Error(Code::not_found,
                    Outcome::not_applied,
                    fmt::format("cannot read '{}'; name a file of holdfast flow export", path));
    }
    return text;
}

void write_all(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    fmt::format("cannot write '{}'; choose another file", path));
    }
}

bool has_not_ended(const flow::InstanceInfo& info) {
    return !is_final(info.status);
}

void require_target(const FlowRequest& request) {
    if (request.id.empty() == request.where.empty()) {
        throw InvalidArgument(
            "id is required: name one workflow, or many with --where 'status=failed and "
            "workflow=NAME'");
    }
}

int reset_many(const Context& context,
               const FlowRequest& request,
               const flow::ResetOptions& options) {
    if (options.to == flow::ResetTo::event) {
        throw InvalidArgument(
            "--to names an event of one history; use --before-failure or --to-start with --where");
    }
    const bool failed_only = options.to == flow::ResetTo::before_failure;
    return run_bulk(context,
                    request,
                    {.verb = "reset",
                     .concerns =
                         [=](const flow::InstanceInfo& info) {
                             return !failed_only || info.status == flow::Status::failed ||
                                    info.status == flow::Status::cancelled;
                         },
                     .apply =
                         [&](FlowAccess& flows, const flow::InstanceInfo& info) {
                             (void)flows.client().reset(info.instance, options);
                             return true;
                         }});
}

std::string counts_text(const flow::DeleteCounts& counts) {
    return fmt::format("removed {} instances, {} executions, {} events, {} messages",
                       counts.instances,
                       counts.executions,
                       counts.events,
                       counts.messages);
}

}  // namespace

int flow_start(const Context& context, const FlowRequest& request) {
    const flow::StartOptions options{.version = request.version,
                                     .delay = duration_of("--delay", request.delay),
                                     .duplicate = policy_named(request.on_duplicate),
                                     .cron = request.cron};
    const flow::Payload input = json_arguments("--input", request.input);
    const std::string id = request.id.empty() ? Uuid::v4().text() : request.id;
    FlowAccess flows(context);
    const bool created = flows.client().start_by_name(options, request.workflow, id, input);
    return say(context,
               {{"id", id}, {"workflow", request.workflow}, {"created", created}},
               created ? fmt::format("started {}", id) : fmt::format("{} already exists", id));
}

int flow_signal(const Context& context, const FlowRequest& given) {
    FlowRequest request = given;
    if (!request.where.empty()) {  // No id: the channel and the message move up.
        if (!request.data.empty()) {
            throw InvalidArgument("--where replaces the id; give only a channel and a message");
        }
        request.data = std::move(request.name);
        request.name = std::exchange(request.id, {});
    }
    require_target(request);
    if (request.name.empty()) {
        throw InvalidArgument("channel is required: name the channel that gets the message");
    }
    const flow::Payload data =
        json_value("the message", request.data.empty() ? "null" : request.data);
    flow::MessageBody message = flow::ChannelMessage{request.name, data};
    if (request.positional) {
        message = flow::SignalMessage{request.name, data};
    }
    if (!request.where.empty()) {
        return run_bulk(context,
                        request,
                        {.verb = "signal",
                         .concerns = has_not_ended,
                         .apply = [&](FlowAccess& flows, const flow::InstanceInfo& info) {
                             return flows.client().send(info.instance, message) ==
                                    flow::Delivery::delivered;
                         }});
    }
    FlowAccess flows(context);
    if (!request.early) {
        (void)flows.running(request.id, "signal");
    }
    const flow::Delivery delivery = flows.client().send(request.id, std::move(message));
    const bool early = delivery == flow::Delivery::early;
    if (!early || !request.early) {
        require_delivered(delivery, request.id);
    }
    return say(context,
               {{"id", request.id}, {"name", request.name}, {"early", early}},
               early ? fmt::format("kept for {}, which has not started", request.id)
                     : fmt::format("sent to {}", request.id));
}

int flow_query(const Context& context, const FlowRequest& request) {
    return ask(context, request, false);
}

int flow_update(const Context& context, const FlowRequest& request) {
    return ask(context, request, true);
}

int flow_cancel(const Context& context, const FlowRequest& request) {
    const milliseconds grace = duration_of("--grace", request.grace);
    require_target(request);
    if (!request.where.empty()) {
        return run_bulk(context,
                        request,
                        {.verb = "cancel",
                         .concerns = has_not_ended,
                         .apply = [&](FlowAccess& flows, const flow::InstanceInfo& info) {
                             return flows.client().cancel(info.instance, request.reason, grace) ==
                                    flow::Delivery::delivered;
                         }});
    }
    FlowAccess flows(context);
    (void)flows.running(request.id, "cancel");
    require_delivered(flows.client().cancel(request.id, request.reason, grace), request.id);
    return say(context,
               {{"id", request.id}, {"cancel", "requested"}},
               fmt::format("requested cancellation of {}", request.id));
}

int flow_terminate(const Context& context, const FlowRequest& request) {
    require_target(request);
    if (!request.where.empty()) {
        return run_bulk(context,
                        request,
                        {.verb = "terminate",
                         .concerns = has_not_ended,
                         .apply = [&](FlowAccess& flows, const flow::InstanceInfo& info) {
                             return flows.client().terminate(info.instance, request.reason) ==
                                    flow::Delivery::delivered;
                         }});
    }
    FlowAccess flows(context);
    (void)flows.running(request.id, "terminate");
    require_delivered(flows.client().terminate(request.id, request.reason), request.id);
    return say(context,
               {{"id", request.id}, {"terminate", "requested"}},
               fmt::format("{} ends at its next turn, without running its code", request.id));
}

int flow_fail(const Context& context, const FlowRequest& request) {
    require_target(request);
    if (!request.where.empty()) {
        return run_bulk(context,
                        request,
                        {.verb = "fail",
                         .concerns = has_not_ended,
                         .apply = [&](FlowAccess& flows, const flow::InstanceInfo& info) {
                             return flows.client().fail(info.instance, request.reason) ==
                                    flow::Delivery::delivered;
                         }});
    }
    FlowAccess flows(context);
    (void)flows.running(request.id, "fail");
    require_delivered(flows.client().fail(request.id, request.reason), request.id);
    return say(context,
               {{"id", request.id}, {"fail", "requested"}},
               fmt::format("{} fails at its next turn, without running its code", request.id));
}

int flow_suspend(const Context& context, const FlowRequest& request) {
    FlowAccess flows(context);
    (void)flows.running(request.id, "suspend");
    require_delivered(flows.client().suspend(request.id, request.reason), request.id);
    return say(context,
               {{"id", request.id}, {"suspend", "requested"}},
               fmt::format("{} stops after its next turn; its messages wait", request.id));
}

int flow_resume(const Context& context, const FlowRequest& request) {
    FlowAccess flows(context);
    (void)flows.running(request.id, "resume");
    (void)flows.client().resume(request.id);
    return say(
        context, {{"id", request.id}, {"resumed", true}}, fmt::format("{} continues", request.id));
}

int flow_reset(const Context& context, const FlowRequest& request) {
    const int points =
        (request.to > 0 ? 1 : 0) + (request.to_start ? 1 : 0) + (request.before_failure ? 1 : 0);
    if (points != 1) {
        throw InvalidArgument(
            "no target given; use --before-failure, --to-start, or --to with the last event to "
            "keep (see holdfast flow history)");
    }
    flow::ResetOptions options{.event = request.to, .version = request.version};
    if (!request.before_failure) {
        options.to = request.to_start ? flow::ResetTo::start : flow::ResetTo::event;
    }
    require_target(request);
    if (!request.where.empty()) {
        return reset_many(context, request, options);
    }
    FlowAccess flows(context);
    (void)flows.info(request.id);
    if (request.dry_run) {
        return say_plan(context, request.id, flows.client().plan(request.id, options));
    }
    const flow::ExecutionId execution = flows.client().reset(request.id, options);
    return say(context,
               {{"id", request.id}, {"execution", execution}},
               fmt::format("{} continues as execution {}", request.id, execution));
}

int flow_export(const Context& context, const FlowRequest& request) {
    FlowAccess flows(context);
    const flow::InstanceInfo info = flows.info(request.id);
    const flow::ExecutionId execution = flows.execution_of(info, request.execution);
    const std::string lines = flows.client().export_history(request.id, execution);
    if (request.file.empty() || request.file == "-") {
        print(lines);
        return exit_done;
    }
    write_all(request.file, lines);
    return say(context,
               {{"id", request.id}, {"execution", execution}, {"file", request.file}},
               fmt::format("wrote {}", request.file));
}

int flow_import(const Context& context, const FlowRequest& request) {
    const std::string lines = read_all(request.file);
    FlowAccess flows(context);
    flows.client().import_history(request.id, lines);
    const flow::InstanceInfo info = flows.info(request.id);
    return say(
        context,
        to_json(info),
        fmt::format("imported {}: {}, {} events", request.id, status_text(info), info.last_event));
}

int flow_delete(const Context& context, const FlowRequest& request) {
    if (request.id.empty() == request.older_than.empty()) {
        throw InvalidArgument(
            "name one workflow to delete, or those that ended long ago with "
            "--older-than 30d");
    }
    FlowAccess flows(context);
    flow::DeleteCounts counts;
    if (!request.id.empty()) {
        (void)flows.info(request.id);
        counts = flows.client().remove(request.id, request.force);
    } else {
        const milliseconds age = duration_of("--older-than", request.older_than);
        counts = flows.client().remove_ended(
            {.ids = {}, .completed_before = flows.now() - age, .limit = request.limit});
    }
    return say(context, to_json(counts), counts_text(counts));
}

int flow_prune(const Context& context, const FlowRequest& request) {
    if (request.id.empty() && (request.older_than.empty() || request.keep != 1)) {
        throw InvalidArgument(
            "name one workflow to prune, or all earlier executions that ended long ago with "
            "--older-than 30d and no --keep");
    }
    FlowAccess flows(context);
    std::optional<flow::Moment> before;
    if (!request.older_than.empty()) {
        before = flows.now() - duration_of("--older-than", request.older_than);
    }
    flow::DeleteCounts counts;
    if (request.id.empty()) {
        HOLDFAST_ASSERT(before.has_value());  // Without an id, an age is required.
        counts = flows.client().prune_ended(*before, request.limit);
    } else {
        (void)flows.info(request.id);
        counts = flows.client().prune(request.id,
                                      {.keep_last = request.keep, .completed_before = before});
    }
    return say(
        context,
        to_json(counts),
        fmt::format("removed {} earlier executions, {} events", counts.executions, counts.events));
}

int flow_replay(const Context&, const FlowRequest& request) {
    throw InvalidArgument(fmt::format(
        "holdfast has no workflow code to replay {} with; call flow::command_line(registry, argc, "
        "argv) in your own program and use its verb replay",
        request.file.empty() ? "a history" : request.file));
}

}  // namespace holdfast::app
