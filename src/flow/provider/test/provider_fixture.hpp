// The provider under test, and short words for those who use it: clients start and signal,
// dispatchers claim instances and commit turns, workers take activities and end them.
#pragma once

#include <chrono>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <holdfast/base/uuid.hpp>
#include <holdfast/flow/provider.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/flow_engine/stored.hpp>
#include <holdfast/sql/schema.hpp>
#include <holdfast/testing/backends.hpp>
#include <holdfast/testing/check.hpp>
#include <holdfast/testing/conflicts.hpp>
#include <holdfast/testing/database.hpp>

namespace holdfast::flow {

// For the reports of failed tests.
inline std::ostream& operator<<(std::ostream& out, Committed answer) {
    switch (answer) {
        case Committed::yes:
            return out << "committed";
        case Committed::lost:
            return out << "lost";
        case Committed::rejected:
            return out << "rejected";
        case Committed::too_large:
            break;
    }
    return out << "too large";
}

}  // namespace holdfast::flow

namespace holdfast::flow::tests {

using namespace std::chrono_literals;

// A database, and which of its commits are refused with a conflict: every second one, say.
struct Setting {
    test::Backend backend = test::Backend::sqlite;
    int conflict_every = 0;  // 0: none.
};

inline std::ostream& operator<<(std::ostream& out, const Setting& setting) {
    return out << to_string(setting.backend) << ", conflicts: " << setting.conflict_every;
}

// Every second commit: a transaction without a rival fails once and then succeeds.
[[nodiscard]] inline auto every_setting() {
    return testing::Values(Setting{test::Backend::sqlite},
                           Setting{test::Backend::postgres},
                           Setting{test::Backend::dsql, 2});
}

[[nodiscard]] inline std::string setting_name(const testing::TestParamInfo<Setting>& info) {
    return std::string(to_string(info.param.backend)) +
           (info.param.conflict_every > 0 ? "_with_conflicts" : "");
}

[[nodiscard]] inline Payload text(std::string_view value) {
    return Payload{quote(value)};
}

// What must be there, or the test has failed.
template <class T>
[[nodiscard]] T found(std::optional<T> value, std::string_view what) {
    if (!value) {
        throw std::logic_error("there is no " + std::string(what));
    }
    return std::move(*value);
}

struct Placed {
    std::optional<std::string> session{};
    std::optional<std::string> tag{};
    milliseconds ahead{0};
    bool must_begin = false;
};

// One turn of a claimed instance, as a runtime would commit it: it has read all the mail that came
// with the claim, and the first turn of an execution writes event 1.
class ClaimedTurn {
public:
    explicit ClaimedTurn(const ClaimedInstance& claim)
        : now_ms_(claim.now.time_since_epoch().count()) {
        commit.instance = claim.instance;
        commit.token = claim.token;
        commit.next_token = Uuid::v4();
        commit.execution = claim.execution;
        commit.last_event = claim.last_event;
        for (const InboxMessage& message : claim.messages) {
            commit.consumed.push_back(message.position);
            const auto* start = std::get_if<StartMessage>(&message.message.body);
            if (start != nullptr && message.error.empty()) {
                begins(*start);
            }
        }
    }

    ClaimedTurn& records(EventId event, EventBody body, EventId source = 0) {
        commit.events.push_back(
            {.id = event, .source = source, .time_ms = now_ms_, .body = std::move(body)});
        return *this;
    }
    ClaimedTurn& schedules(EventId event, const std::string& name, const Placed& placed = {}) {
        commit.activities.push_back({.key = key(event),
                                     .name = name,
                                     .input = text("input of " + name),
                                     .workflow = "order",
                                     .version = "1.0.0",
                                     .session = placed.session,
                                     .tag = placed.tag,
                                     .ahead = placed.ahead,
                                     .must_begin = placed.must_begin});
        return records(event, ActivityScheduled{name, text("input"), placed.session, placed.tag});
    }
    ClaimedTurn& waits_until(EventId event, Moment moment) {
        const std::int64_t at_ms = moment.time_since_epoch().count();
        records(event, TimerCreated{at_ms});
        return sends(commit.instance, TimerMessage{event, at_ms}, commit.execution, at_ms);
    }
    ClaimedTurn& starts_child(EventId event, const std::string& instance) {
        commit.starts.push_back({instance,
                                 {.name = "child",
                                  .version = "1.0.0",
                                  .input = text("from the parent"),
                                  .parent = ParentLink{commit.instance, commit.execution, event}}});
        return records(event, ChildScheduled{"child", instance, text("from the parent"), "1.0.0"});
    }
    ClaimedTurn& sends(const std::string& instance,
                       MessageBody body,
                       ExecutionId execution = 0,
                       std::int64_t visible_at_ms = 0) {
        commit.messages.push_back(
            {instance, {.execution = execution, .body = std::move(body)}, visible_at_ms});
        return *this;
    }
    ClaimedTurn& cancels(EventId activity) {
        commit.cancelled_activities.push_back(key(activity));
        return *this;
    }
    ClaimedTurn& cancels_timer(EventId timer) {
        commit.cancelled_timers.push_back(timer);
        return *this;
    }
    ClaimedTurn& pins(Version engine) {
        TurnCommit::Begun begun{.name = "order", .version = "1.0.0", .parent = {}};
        begun = commit.begun.value_or(begun);
        begun.engine = engine;
        commit.begun = begun;
        return *this;
    }

    ClaimedTurn& completes(std::string_view output = "done") {
        records(next_event(), WorkflowCompleted{text(output)});
        return ends(Status::completed, quote(output));
    }
    ClaimedTurn& fails(const std::string& message = "no stock") {
        FailureInfo failure{.type = "Sad", .message = message};
        const std::string output = encode(failure);
        records(next_event(), WorkflowFailed{std::move(failure)});
        return ends(Status::failed, output);
    }
    ClaimedTurn& continues(const std::string& version = "1.0.0") {
        records(next_event(), WorkflowContinued{text("next input"), version});
        WorkflowStarted started{.name = "order",
                                .version = version,
                                .input = text("next input"),
                                .parent = {},
                                .status = {}};
        commit.next = {.execution = commit.execution + 1,
                       .version = version,
                       .events = {{.id = 1, .time_ms = now_ms_, .body = std::move(started)}}};
        sends(commit.instance, ContinueMessage{}, commit.execution + 1);
        return ends(Status::continued, quote("next input"));
    }

    ClaimedTurn& says(std::string_view status) { return changes_status(text(status)); }
    ClaimedTurn& says_nothing() { return changes_status({}); }
    ClaimedTurn& sets(const std::string& key, std::string_view value) {
        commit.kv.push_back({.what = KvChange::What::set, .key = key, .value = text(value)});
        return *this;
    }
    ClaimedTurn& erases(const std::string& key) {
        commit.kv.push_back({.what = KvChange::What::erase, .key = key});
        return *this;
    }
    ClaimedTurn& clears() {
        commit.kv.push_back({.what = KvChange::What::clear});
        return *this;
    }

    [[nodiscard]] EventId next_event() const {
        return commit.events.empty() ? commit.last_event + 1 : commit.events.back().id + 1;
    }

    TurnCommit commit;  // Open, for those who break the rules.

private:
    [[nodiscard]] ActivityKey key(EventId event) const {
        return {commit.instance, commit.execution, event};
    }
    void begins(const StartMessage& start) {
        const std::string version = start.version.empty() ? "1.0.0" : start.version;
        commit.begun = {.name = start.name, .version = version, .parent = start.parent};
        WorkflowStarted started{.name = start.name,
                                .version = version,
                                .input = start.input,
                                .parent = start.parent,
                                .status = {}};
        records(1, std::move(started));
    }
    ClaimedTurn& ends(Status status, std::string output) {
        commit.status = status;
        commit.output = std::move(output);
        return *this;
    }
    ClaimedTurn& changes_status(std::optional<Payload> status) {
        commit.custom_status = StatusChange{std::move(status)};
        ++commit.status_changes;
        return *this;
    }

    std::int64_t now_ms_;
};

[[nodiscard]] inline ClaimedTurn turn(const ClaimedInstance& claim) {
    return ClaimedTurn(claim);
}

// Conflicts are retried after a millisecond; work is taken in order of arrival everywhere.
[[nodiscard]] inline SqlProviderOptions quick() {
    SqlProviderOptions options;
    options.spare_candidates = 0;
    options.retry.base_delay = 1ms;
    options.retry.max_delay = 10ms;
    return options;
}

class ProviderStory : public testing::TestWithParam<Setting> {
protected:
    // --- clients
    Started start(const std::string& instance, const std::string& name = "order") {
        return provider.start({.instance = instance, .start = start_of(name)});
    }
    [[nodiscard]] static StartMessage start_of(const std::string& name) {
        return {.name = name, .version = "1.0.0", .input = text("input"), .parent = {}};
    }
    Delivery signal(const std::string& instance, const std::string& name = "go") {
        return provider.send({instance, {.body = SignalMessage{name, text("now")}}});
    }
    [[nodiscard]] InstanceInfo info(std::string_view instance) {
        return found(provider.info(instance), instance);
    }
    [[nodiscard]] std::optional<std::string> value(std::string_view instance,
                                                   std::string_view key) {
        const auto payload = provider.kv_value(instance, key);
        return payload ? std::optional(payload->json) : std::nullopt;
    }
    [[nodiscard]] std::vector<std::string> keys(std::string_view instance) {
        std::vector<std::string> names;
        for (const auto& [key, entry] : provider.kv_all(instance)) {
            names.push_back(key);
        }
        return names;
    }
    [[nodiscard]] std::vector<std::string> seeds(std::string_view instance, ExecutionId execution) {
        std::vector<std::string> names;
        for (const auto& [key, entry] : provider.load_history(instance, execution).kv) {
            names.push_back(key);
        }
        return names;
    }

    // --- dispatchers
    std::optional<ClaimedInstance> claim(milliseconds lease = 5s) {
        auto claims = provider.claim_instances({.lease = lease});
        return claims.empty() ? std::nullopt : std::optional(std::move(claims.front()));
    }
    ClaimedInstance peeked(std::string_view instance, const Uuid& token) {
        return found(provider.peek_instance(instance, token), instance);
    }
    // The only one that has work, or the oldest of them.
    ClaimedInstance claimed(std::string_view instance, milliseconds lease = 5s) {
        auto found_one = found(claim(lease), instance);
        if (found_one.instance != instance) {
            throw std::logic_error("claimed " + found_one.instance + " instead of " +
                                   std::string(instance));
        }
        return found_one;
    }
    std::vector<std::string> claim_all(const std::optional<ReplayVersions>& versions = {}) {
        std::vector<std::string> names;
        for (const auto& one : provider.claim_instances({.count = 100, .versions = versions})) {
            names.push_back(one.instance);
        }
        return names;
    }
    bool idle() { return claim_all().empty(); }
    Committed commit(const ClaimedTurn& turn) {
        return provider.commit_turns(std::span(&turn.commit, 1)).at(0);
    }
    // Starts an instance and runs its first turn; `more` adds to it.
    template <class More>
    void begin(const std::string& instance, More&& more) {
        start(instance);
        ClaimedTurn first = turn(claimed(instance));
        more(first);
        ASSERT_EQ(commit(first), Committed::yes) << instance;
    }
    void begin(const std::string& instance) {
        begin(instance, [](ClaimedTurn&) {});
    }
    // Signals an instance and runs the turn that follows.
    template <class More>
    void proceed(const std::string& instance, More&& more) {
        signal(instance);
        ClaimedTurn next = turn(claimed(instance));
        more(next);
        ASSERT_EQ(commit(next), Committed::yes) << instance;
    }
    void finish(const std::string& instance) {
        proceed(instance, [](ClaimedTurn& last) { last.completes(); });
    }
    void begin_and_finish(const std::string& instance) {
        begin(instance, [](ClaimedTurn& only) { only.completes(); });
    }
    // One more execution: the turn that continues, and the first one of the execution that follows.
    void renew_execution(const std::string& instance) {
        proceed(instance, [](ClaimedTurn& last) { last.continues(); });
        ASSERT_EQ(commit(turn(claimed(instance))), Committed::yes) << instance;
    }
    [[nodiscard]] std::vector<EventId> history(std::string_view instance,
                                               ExecutionId execution = 1) {
        std::vector<EventId> ids;
        for (const Event& event : provider.load_history(instance, execution).events) {
            ids.push_back(event.id);
        }
        return ids;
    }

    // --- workers
    // An instance whose first turn schedules these activities, from event 2 on.
    void queue(const std::string& instance,
               const std::vector<std::string>& names,
               const Placed& placed = {}) {
        begin(instance, [&](ClaimedTurn& first) {
            for (const std::string& name : names) {
                first.schedules(first.next_event(), name, placed);
            }
        });
    }
    std::optional<ClaimedActivity> take(const ClaimActivities& ask = {}) {
        auto claims = provider.claim_activities(ask);
        return claims.empty() ? std::nullopt : std::optional(std::move(claims.front()));
    }
    ClaimedActivity taken(std::string_view name, const ClaimActivities& ask = {}) {
        auto found_one = found(take(ask), name);
        if (found_one.task.name != name) {
            throw std::logic_error("took " + found_one.task.name + " instead of " +
                                   std::string(name));
        }
        return found_one;
    }
    std::vector<std::string> take_all(ClaimActivities ask = {}) {
        ask.count = 100;
        std::vector<std::string> names;
        for (const auto& one : provider.claim_activities(ask)) {
            names.push_back(one.task.name);
        }
        return names;
    }
    bool end(const ClaimedActivity& activity) {
        const ActivityAnswer answer{activity.task.key.event, text("result")};
        return end_with(activity, answer);
    }
    bool end_with(const ClaimedActivity& activity, const std::optional<ActivityAnswer>& answer) {
        const ActivityEnd end{activity.task.key, activity.token, answer};
        return provider.end_activities(std::span(&end, 1)).at(0);
    }
    bool renew(const ClaimedActivity& activity, milliseconds lease = 30s) {
        const std::pair held{activity.task.key, activity.token};
        return provider.renew_activities(std::span(&held, 1), lease).at(0);
    }
    bool abandon(const ClaimedActivity& activity,
                 milliseconds delay = 0ms,
                 bool ignore_attempt = false) {
        return provider.abandon_activity(activity.task.key, activity.token, delay, ignore_attempt);
    }

    // Changes rows behind the provider's back, and past the conflicts.
    void tamper(const std::string& script) const {
        const bool refuses = GetParam().conflict_every > 0;
        db.execute((refuses ? "SET ROLE postgres;" + std::string(test::past_conflicts) : "") +
                   script);
    }
    [[nodiscard]] std::int64_t rows(const std::string& table, const std::string& instance) const {
        return db.number("SELECT COUNT(*) FROM " + table + " WHERE instance_id = '" + instance +
                         "'");
    }

    test::Database db{GetParam().backend, schema_part()};
    SqlProvider provider{prepared(), quick()};

private:
    sql::Database& prepared() {
        if (GetParam().conflict_every > 0) {
            test::refuse_commits(db, GetParam().conflict_every, "flow_");
        }
        return db;
    }
};

}  // namespace holdfast::flow::tests
