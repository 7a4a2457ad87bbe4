#include "runtime/turns.hpp"

#include <algorithm>
#include <variant>

#include "runtime/activity_pool.hpp"
#include "runtime/database_clock.hpp"
#include "runtime/meters.hpp"
#include "runtime/unserved.hpp"
#include <fmt/core.h>

#include <holdfast/base/log.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

// A history up to this length is replayed beside a cached turn to check it; longer ones cost too
// much.
constexpr EventId shadow_events_max = 1'000;
constexpr std::size_t called_back_max = 500;
constexpr std::size_t recorded_bytes_max = 2U << 20U;

Logger& logger_of(const RuntimeOptions& options) {
    return options.logger != nullptr ? *options.logger : null_logger();
}

// Ends the execution without its code. Like any end, it cancels what is still open.
void end_by_force(Turn& turn,
                  const TurnContext& turn_context,
                  std::span<const LeftOpen> open,
                  FailureInfo why) {
    turn.ending = why.kind == FailureKind::cancelled ? Ending::cancelled : Ending::failed;
    const EventBody end = WorkflowFailed{std::move(why)};
    EventId id = turn.events.empty() ? turn_context.last_event : turn.events.back().id;
    const auto add = [&](EventBody body, EventId source) {
        turn.events.push_back(Event{.id = ++id,
                                    .source = source,
                                    .time_ms = turn_context.now.time_since_epoch().count(),
                                    .body = std::move(body)});
    };
    // More would not fit into the one transaction that ends it.
    for (const LeftOpen& operation : open.first(std::min(open.size(), called_back_max))) {
        add(OperationCancelled{operation.operation, std::string(kind_name(end))}, operation.event);
        abandon(turn, operation);
    }
    add(end, 0);
}

const StartMessage* start_among(const std::vector<InboxMessage>& messages) {
    for (const InboxMessage& mail : messages) {
        if (const StartMessage* start = std::get_if<StartMessage>(&mail.message.body)) {
            return start;
        }
    }
    return nullptr;
}

// The end that an operator has requested, by terminate or by fail. Empty: there is none.
std::optional<FailureInfo> ordered_end(const std::vector<InboxMessage>& messages, bool as_failed) {
    for (const InboxMessage& mail : messages) {
        const CancelMessage* const cancel = std::get_if<CancelMessage>(&mail.message.body);
        if (mail.error.empty() && cancel != nullptr && cancel->force &&
            cancel->fail.value_or(false) == as_failed) {
            return FailureInfo{
                .kind = as_failed ? FailureKind::application : FailureKind::cancelled,
                .type = as_failed ? std::string(failed_by_operator) : std::string("Cancelled"),
                .message = cancel->reason,
                .retryable = false};
        }
    }
    return std::nullopt;
}

// By the request a replay knows that the code did not end by itself. The messages that waited come
// after it: the code does not see them, and a reset delivers them again.
void record_order(Turn& turn, const TurnContext& turn_context, const std::string& reason) {
    const std::int64_t now_ms = turn_context.now.time_since_epoch().count();
    const auto add = [&](EventBody body) {
        turn.events.push_back(Event{.id = turn_context.last_event + turn.events.size() + 1,
                                    .source = 0,
                                    .time_ms = now_ms,
                                    .body = std::move(body)});
    };
    add(CancelRequested{reason, now_ms});
    std::size_t bytes = 0;
    for (const InboxMessage& mail : turn_context.mail) {
        const MessageBody& body = mail.message.body;
        const auto* const message = std::get_if<ChannelMessage>(&body);
        const auto* const signal = std::get_if<SignalMessage>(&body);
        if (!mail.error.empty() || (message == nullptr && signal == nullptr)) {
            continue;
        }
        bytes += message != nullptr ? message->data.json.size() : signal->data.json.size();
        if (bytes > recorded_bytes_max) {
            return;
        }
        add(message != nullptr ? EventBody(MessageReceived{message->channel, message->data})
                               : EventBody(SignalReceived{signal->name, signal->data}));
    }
}

// Answers that the turn has not taken; they follow the mail among its messages.
std::vector<ActivityEnd> take_out_left(const Turn& turn,
                                       std::size_t mail,
                                       std::vector<ActivityEnd>& answers) {
    std::vector<ActivityEnd> left;
    if (!turn.left_some) {
        return left;
    }
    std::vector<bool> taken(answers.size(), false);
    for (const std::size_t i : turn.taken) {
        if (i >= mail) {
            taken[i - mail] = true;
        }
    }
    std::vector<ActivityEnd> kept;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        (taken[i] ? kept : left).push_back(std::move(answers[i]));
    }
    answers = std::move(kept);
    return left;
}

}  // namespace

TurnRunner::TurnRunner(Provider& provider,
                       const Registry& registry,
                       const RuntimeOptions& options,
                       InstanceTable& instances,
                       ActivityPool& activities,
                       DatabaseClock& clock,
                       Meters& meters,
                       Unserved& unserved,
                       std::function<void()> look_for_mail)
    : provider_(provider),
      registry_(registry),
      options_(options),
      instances_(instances),
      activities_(activities),
      clock_(clock),
      meters_(meters),
      unserved_(unserved),
      look_for_mail_(std::move(look_for_mail)) {}

std::optional<PreparedTurn> TurnRunner::run(Instance& instance,
                                            TurnInput input,
                                            std::vector<ActivityEnd>& unwanted) {
    if (input.claim) {  // It exists: a start must be declined.
        input.first.settle(detail::FirstTurn::Answer::declined);
    }
    TurnContext turn_context;
    if (!look(instance, input, turn_context)) {
        lose(instance, std::move(input), unwanted);
        return std::nullopt;
    }
    if (std::optional<FailureInfo> end = ordered_end(turn_context.mail, true)) {
        unwanted.insert(unwanted.end(), input.answers.begin(), input.answers.end());
        return fail(instance, turn_context, std::move(*end));
    }
    if (turn_context.leased && turn_context.attempt > options_.max_attempts) {
        unwanted.insert(unwanted.end(), input.answers.begin(), input.answers.end());
        return poison(instance, turn_context);
    }
    if (const std::optional<Obstacle> obstacle = load(instance, turn_context)) {
        return stop_at(instance, turn_context, *obstacle, std::move(input), unwanted);
    }
    auto deadlines = fail_what_nobody_began(instance, turn_context);
    std::vector<Message> messages;
    for (const InboxMessage& mail : turn_context.mail) {
        meters_.taking(mail.message, turn_context.now);
        messages.push_back(mail.message);
    }
    std::vector<ActivityEnd> finished;
    for (ActivityEnd& end : input.answers) {
        if (end.key.execution == turn_context.execution && end.answer &&
            instance.execution->waits_for(end.key.event)) {
            messages.push_back(Message{.execution = end.key.execution, .body = *end.answer});
            finished.push_back(std::move(end));
        } else {
            // With its answer: the memory here may be older than the store, where another process
            // has scheduled it. If it is not needed, the store refuses the answer.
            unwanted.push_back(std::move(end));
        }
    }
    if (messages.empty() && !turn_context.leased && turn_context.last_event != 0) {
        instances_.done(instance, instance.execution->bytes());
        return std::nullopt;
    }
    Turn turn = checked(instance, turn_context, messages);
    if (turn.mismatch && registry_.nondeterminism_policy() == NondeterminismPolicy::block) {
        input.answers = std::move(finished);
        const Obstacle obstacle{BlockKind::nondeterminism, turn.failure().message};
        return stop_at(instance, turn_context, obstacle, std::move(input), unwanted);
    }
    if (turn_context.creates && turn.ending == Ending::continued) {
        lose(instance, std::move(input), unwanted);  // Two executions at once: not in one commit.
        return std::nullopt;
    }
    std::vector<ActivityEnd> left = take_out_left(turn, turn_context.mail.size(), finished);
    const bool goes_on = turn.left_some;
    PreparedTurn prepared = prepare(instance, turn_context, std::move(turn), std::move(finished));
    prepared.left = std::move(left);
    prepared.goes_on = goes_on;
    for (auto& [event, deadline] : deadlines) {
        if (prepared.commit.status == Status::running && instance.execution->waits_for(event)) {
            prepared.commit.messages.push_back(std::move(deadline));
        }
    }
    prepared.first = std::move(input.first);
    prepared.turn_context = std::move(turn_context);
    return prepared;
}

// Fills in the context of this turn. False: the instance is not held here any more.
bool TurnRunner::look(Instance& instance, TurnInput& input, TurnContext& turn_context) {
    if (input.first) {
        const StartMessage& start = input.first->start();
        const InboxMessage mail{.message = Message{.execution = 0, .body = start}};
        turn_context = TurnContext{.name = start.name,
                                   .version = start.version,
                                   .execution = 1,
                                   .last_event = 0,
                                   .token = {},
                                   .leased = false,
                                   .attempt = 0,
                                   .now = clock_.now(),
                                   .mail = {mail},
                                   .creates = true};
    } else if (!input.claim && input.mail) {
        std::optional<ClaimedInstance> peeked =
            provider_.peek_instance(instance.id, instance.token);
        if (!peeked) {
            return false;
        }
        clock_.heard(peeked->now);
        turn_context = TurnContext{.name = std::move(peeked->name),
                                   .version = std::move(peeked->version),
                                   .execution = peeked->execution,
                                   .last_event = peeked->last_event,
                                   .token = instance.token,
                                   .leased = false,
                                   .attempt = 0,
                                   .now = peeked->now,
                                   .mail = std::move(peeked->messages)};
    } else if (input.claim) {
        const ClaimedInstance& claim = *input.claim;
        clock_.heard(claim.now);
        instances_.hold_lease(instance, claim.token, options_.clock->steady_now());
        instance.token = claim.token;
        turn_context = TurnContext{.name = claim.name,
                                   .version = claim.version,
                                   .execution = claim.execution,
                                   .last_event = claim.last_event,
                                   .token = claim.token,
                                   .leased = true,
                                   .attempt = claim.attempt,
                                   .blocked_tries = claim.blocked_tries,
                                   .now = claim.now,
                                   .mail = claim.messages};
    } else {
        if (!instance.execution) {
            return false;
        }
        const WorkflowStarted& started = instance.execution->started();
        turn_context = TurnContext{.name = started.name,
                                   .version = started.version,
                                   .execution = instance.number,
                                   .last_event = instance.execution->last_event(),
                                   .token = instance.token,
                                   .leased = false,
                                   .attempt = 0,
                                   .now = clock_.now(),
                                   .mail = {}};
    }
    return true;
}

std::optional<Obstacle> TurnRunner::load(Instance& instance, const TurnContext& turn_context) {
    for (const InboxMessage& mail : turn_context.mail) {
        if (!mail.error.empty()) {
            return Obstacle{
                BlockKind::unreadable,
                fmt::format(
                    "message {} cannot be read by this build: {}", mail.position, mail.error)};
        }
    }
    if (instance.execution && instance.number == turn_context.execution &&
        instance.execution->last_event() == turn_context.last_event) {
        ++meters_.from_cache;
        return std::nullopt;
    }
    instance.execution.reset();
    if (turn_context.last_event == 0) {
        return begin(instance, turn_context);
    }
    const std::optional<detail::Program> program =
        registry_.find_workflow(turn_context.name, turn_context.version);
    if (!program) {
        return unregistered(turn_context.name, turn_context.version, turn_context);
    }
    LoadedHistory loaded = provider_.load_history(instance.id, turn_context.execution);
    meters_.history_bytes_read += loaded.bytes;
    if (!loaded.error.empty() || loaded.events.empty()) {
        return Obstacle{BlockKind::unreadable,
                        fmt::format("the history cannot be read by this build: {}",
                                    loaded.error.empty() ? "it is empty" : loaded.error)};
    }
    meters_.events_replayed += static_cast<std::int64_t>(loaded.events.size());
    instance.number = turn_context.execution;
    instance.execution = make_execution(instance, *program);
    instance.execution->load(std::move(loaded.events), std::move(loaded.kv));
    return std::nullopt;
}

Obstacle TurnRunner::unregistered(std::string_view name,
                                  std::string_view version,
                                  const TurnContext& turn_context) {
    std::string what = fmt::format("workflow {}{}{}", name, version.empty() ? "" : " ", version);
    std::string reason = fmt::format("no worker that looked has the {}", what);
    unserved_.missing(std::move(what), turn_context.now);
    return Obstacle{BlockKind::unregistered, std::move(reason)};
}

std::unique_ptr<Execution> TurnRunner::make_execution(const Instance& instance,
                                                      detail::Program program) const {
    return std::make_unique<Execution>(
        instance.id, instance.number, program, options_.limits, options_.logger, options_.build_id);
}

std::optional<Obstacle> TurnRunner::begin(Instance& instance, const TurnContext& turn_context) {
    const StartMessage* const start = start_among(turn_context.mail);
    if (start == nullptr) {
        return Obstacle{BlockKind::unreadable, "the instance has mail, but no start message"};
    }
    const std::optional<std::string> version =
        start->version.empty() ? registry_.version_for_start(start->name) : start->version;
    const std::optional<detail::Program> program =
        version ? registry_.find_workflow(start->name, *version) : std::nullopt;
    if (!program) {
        return unregistered(start->name, start->version, turn_context);
    }
    std::map<std::string, Payload> keys;
    if (turn_context.execution > 1) {  // A scheduled run inherits the keys of the run before.
        keys = provider_.load_history(instance.id, turn_context.execution).kv;
    }
    instance.number = turn_context.execution;
    instance.execution = make_execution(instance, *program);
    instance.execution->begin(WorkflowStarted{.name = start->name,
                                              .version = *version,
                                              .input = start->input,
                                              .parent = start->parent,
                                              .status = std::nullopt,
                                              .cron = start->cron},
                              std::move(keys));
    return std::nullopt;
}

// The failure is in the mail before this turn takes the deadline: if this process dies in between,
// both are there, and a second failure finds no activity. A worker that begins it concurrently is
// either first, and there is no failure, or finds nothing to begin. The holder of a claim may be
// dead before it began: such a deadline is set again, to after the lease. Returns those deadlines.
std::vector<std::pair<EventId, OutgoingMessage>> TurnRunner::fail_what_nobody_began(
    const Instance& instance, const TurnContext& turn_context) {
    std::vector<ActivityEnd> ends;
    std::vector<std::pair<EventId, OutgoingMessage>> again;
    for (const InboxMessage& mail : turn_context.mail) {
        const auto* const deadline = std::get_if<StartDeadline>(&mail.message.body);
        if (deadline == nullptr || mail.message.execution != turn_context.execution) {
            continue;
        }
        FailureInfo failure{
            .kind = FailureKind::timeout,
            .type = "NotStarted",
            .message = fmt::format("no worker began it within {} ms", deadline->limit_ms)};
        ends.push_back({.key = {instance.id, turn_context.execution, deadline->event},
                        .token = Uuid{},  // Of no claim.
                        .answer = ActivityAnswer{deadline->event, std::move(failure)}});
        OutgoingMessage later_on =
            start_deadline(ends.back().key, deadline->limit_ms, turn_context.now);
        later_on.visible_at_ms =
            later(turn_context.now, activities_.lease()).time_since_epoch().count();
        again.emplace_back(deadline->event, std::move(later_on));
    }
    if (ends.empty()) {
        return {};
    }
    const std::vector<bool> failed = provider_.end_activities(ends);
    if (std::ranges::find(failed, true) != failed.end() && !instances_.add_mail(instance.id)) {
        look_for_mail_();
    }
    for (std::size_t i = failed.size(); i-- > 0;) {
        if (failed[i]) {
            again.erase(again.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    return again;
}

std::optional<PreparedTurn> TurnRunner::stop_at(Instance& instance,
                                                const TurnContext& turn_context,
                                                const Obstacle& obstacle,
                                                TurnInput&& input,
                                                std::vector<ActivityEnd>& unwanted) {
    instance.execution.reset();
    if (turn_context.creates) {
        lose(instance, std::move(input), unwanted);
        return std::nullopt;
    }
    if (std::optional<FailureInfo> end = ordered_end(turn_context.mail, false)) {
        unwanted.insert(unwanted.end(), input.answers.begin(), input.answers.end());
        return fail(instance, turn_context, std::move(*end));
    }
    if (obstacle.kind != BlockKind::unregistered) {
        logger_of(options_).error("a workflow is blocked",
                                  {{"instance", instance.id},
                                   {"workflow", turn_context.name},
                                   {"kind", to_string(obstacle.kind)},
                                   {"reason", obstacle.reason},
                                   {"tries", turn_context.blocked_tries + 1}});
    }
    meters_.blocked(obstacle.kind);
    BlockInstance block{.instance = instance.id,
                        .token = turn_context.token,
                        .kind = obstacle.kind,
                        .reason = obstacle.reason,
                        .build = options_.build_id,
                        .pause = unserved_.pause(turn_context.blocked_tries)};
    if (turn_context.leased) {
        for (const InboxMessage& mail : turn_context.mail) {
            block.positions.push_back(mail.position);
        }
    }
    provider_.block_instance(block);
    input.claim.reset();
    forget(instance, std::move(input), unwanted);
    return std::nullopt;
}

void TurnRunner::lose(Instance& instance, TurnInput&& input, std::vector<ActivityEnd>& unwanted) {
    if (input.claim) {
        provider_.abandon_instance(*input.claim, unserved_.pause(0), true);
        input.claim.reset();
    }
    instance.execution.reset();
    forget(instance, std::move(input), unwanted);
}

void TurnRunner::forget(Instance& instance, TurnInput&& input, std::vector<ActivityEnd>& unwanted) {
    TurnInput left = instances_.forget(instance);
    for (TurnInput* part : {&input, &left}) {
        unwanted.insert(unwanted.end(), part->answers.begin(), part->answers.end());
    }
    if (left.claim) {
        instances_.add_claim(std::move(*left.claim));
    } else if (left.mail) {
        look_for_mail_();
    }
}

// Its open operations, found without its code. If the history cannot be read, only the children
// are found, by their parent links.
std::vector<LeftOpen> TurnRunner::open_in_store(const Instance& instance,
                                                const TurnContext& turn_context) {
    if (turn_context.last_event == 0) {
        return {};
    }
    const LoadedHistory loaded = provider_.load_history(instance.id, turn_context.execution);
    if (loaded.error.empty()) {
        return left_open(loaded.events);
    }
    std::vector<LeftOpen> open;
    for (std::string& child : provider_.children(instance.id)) {
        const std::optional<InstanceInfo> info = provider_.info(child);
        if (info && info->parent && !is_final(info->status)) {
            open.push_back({.event = info->parent->event,
                            .operation = Dropped::child,
                            .child = std::move(child)});
        }
    }
    return open;
}

// One turn; at intervals with a replay from scratch beside it, because a cached coroutine would
// hide nondeterminism until the next crash.
Turn TurnRunner::checked(Instance& instance,
                         const TurnContext& turn_context,
                         std::span<const Message> messages) {
    ++meters_.turns;
    ++instance.turns;
    const bool warm = turn_context.last_event != 0 && instance.turns > 1;
    Turn turn = instance.execution->turn(turn_context.now, messages);
    if (!warm || options_.shadow_replay_every == 0 || turn_context.last_event > shadow_events_max ||
        instance.turns % static_cast<std::uint64_t>(options_.shadow_replay_every) != 0) {
        return turn;
    }
    ++meters_.shadow_replays;
    const std::optional<detail::Program> program =
        registry_.find_workflow(turn_context.name, instance.execution->started().version);
    LoadedHistory loaded = provider_.load_history(instance.id, turn_context.execution);
    meters_.history_bytes_read += loaded.bytes;
    if (!program || !loaded.error.empty() || loaded.events.empty() ||
        loaded.events.back().id != turn_context.last_event) {
        return turn;  // Changed by another process; the commit decides.
    }
    const std::vector<LeftOpen> open = left_open(loaded.events);
    Execution cold(
        instance.id, turn_context.execution, *program, options_.limits, nullptr, options_.build_id);
    cold.load(std::move(loaded.events), std::move(loaded.kv));
    const Turn again = cold.turn(turn_context.now, messages);
    if (again.events == turn.events) {
        return turn;
    }
    logger_of(options_).error("a workflow's code is not deterministic",
                              {{"instance", instance.id}, {"workflow", turn_context.name}});
    Turn failed;
    failed.mismatch = true;
    failed.taken = std::move(turn.taken);
    end_by_force(failed,
                 turn_context,
                 open,
                 FailureInfo{.kind = FailureKind::nondeterminism,
                             .type = "Nondeterminism",
                             .message = "replayed over its history, the code did something else",
                             .retryable = false});
    return failed;
}

PreparedTurn TurnRunner::fail(Instance& instance,
                              const TurnContext& turn_context,
                              FailureInfo why) {
    Turn turn;
    if (turn_context.last_event == 0) {
        WorkflowStarted started{.name = turn_context.name,
                                .version = turn_context.version,
                                .input = {},
                                .parent = std::nullopt,
                                .status = std::nullopt};
        if (started.version.empty()) {  // A reset needs the one that would have run.
            started.version = registry_.version_for_start(started.name).value_or("");
        }
        if (const StartMessage* const start = start_among(turn_context.mail)) {
            started.input = start->input;
            started.parent = start->parent;
            started.cron = start->cron;
        }
        turn.events.push_back(Event{.id = 1,
                                    .source = 0,
                                    .time_ms = turn_context.now.time_since_epoch().count(),
                                    .body = std::move(started)});
    }
    if (why.type == failed_by_operator) {
        record_order(turn, turn_context, why.message);
    }
    end_by_force(turn, turn_context, open_in_store(instance, turn_context), std::move(why));
    for (std::size_t i = 0; i < turn_context.mail.size(); ++i) {
        turn.taken.push_back(i);
    }
    instance.execution.reset();
    return prepare(instance, turn_context, std::move(turn), {});
}

PreparedTurn TurnRunner::poison(Instance& instance, const TurnContext& turn_context) {
    ++meters_.poisoned;
    logger_of(options_).error("a workflow is poison", {{"instance", instance.id}});
    return fail(instance,
                turn_context,
                FailureInfo{.kind = FailureKind::poison,
                            .type = "Poison",
                            .message = fmt::format(
                                "the workflow {} was tried {} times (at most {}) and did "
                                "not complete a turn",
                                instance.id,
                                turn_context.attempt - 1,
                                options_.max_attempts),
                            .retryable = false});
}

PreparedTurn TurnRunner::too_large(PreparedTurn& turn) {
    logger_of(options_).error("a turn is too large", {{"instance", turn.instance->id}});
    turn.turn_context.version = turn.instance->execution->started().version;
    PreparedTurn failed =
        fail(*turn.instance,
             turn.turn_context,
             FailureInfo{.kind = FailureKind::application,
                         .type = "LimitExceeded",
                         .message = "one turn wrote more than the database takes in one "
                                    "transaction; start fewer things at once, or pass less",
                         .retryable = false});
    failed.first = std::move(turn.first);
    return failed;
}

}  // namespace holdfast::flow
