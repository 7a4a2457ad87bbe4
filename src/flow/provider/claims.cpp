// Claiming instances: finding those that have mail, and holding them for a while.
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "provider/columns.hpp"
#include "provider/statements.hpp"
#include <fmt/core.h>

#include <holdfast/base/random.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

constexpr std::size_t ranges_per_statement = 4;
// How many rows more than it wants a claim looks at to find some that are not locked.
constexpr int spare_candidates = 32;
constexpr int claim_rounds_max = 8;

struct Range {
    std::int64_t low = 1;  // Empty unless told.
    std::int64_t high = 0;
};
using Ranges = std::array<Range, ranges_per_statement>;

// As many at once as a statement takes; nothing at all for no ranges.
std::vector<Ranges> ranges_of(const std::optional<ReplayVersions>& versions) {
    if (!versions) {
        Ranges all;
        all[0] = {.low = 0, .high = std::numeric_limits<std::int64_t>::max()};
        return {all};
    }
    std::vector<Ranges> groups;
    std::size_t at = 0;
    for (const auto& [low, high] : versions->ranges) {
        if (at % ranges_per_statement == 0) {
            groups.emplace_back();
        }
        groups.back()[at % ranges_per_statement] = {.low = engine_number(low),
                                                    .high = engine_number(high)};
        ++at;
    }
    return groups;
}

struct Candidate {
    ClaimedInstance instance;
    Uuid seen;  // Its token when it was found.
    std::size_t rank = 0;
};

// One call of claim_instances, inside one transaction.
class Claimer {
public:
    // Takes `most` at most, not counting those that the caller holds.
    Claimer(sql::Tx& tx, const ClaimInstances& ask, int spread, int most)
        : tx_(tx), ask_(ask), spread_(spread), left_(most) {}

    std::vector<ClaimedInstance> claim(const std::vector<Ranges>& groups) {
        for (const Ranges& ranges : groups) {
            if (!left_some_) {
                claim(ranges);
            }
        }
        return oldest_first();
    }

    // Without writing. Nothing if there is something to claim; else those the caller holds, if any.
    std::optional<std::vector<ClaimedInstance>> look(const std::vector<Ranges>& groups) {
        for (const Ranges& ranges : groups) {
            std::vector<Candidate> candidates = find(ranges, false);
            if (!candidates.empty() && !name_mine(candidates)) {
                return std::nullopt;
            }
        }
        return oldest_first();
    }

private:
    void claim(const Ranges& ranges) {
        // Rows that others have locked are skipped first. Only if nothing else is left does a claim
        // wait for them: an empty answer must mean that there is no work.
        bool pass_over_locked = tx_.dialect().skip_locked;
        for (int round = 0; round < claim_rounds_max && wanted() > 0 && left_ > 0; ++round) {
            std::vector<Candidate> candidates = find(ranges, pass_over_locked);
            if (candidates.empty() && (!pass_over_locked || !claimed_.empty())) {
                break;
            }
            pass_over_locked = pass_over_locked && !candidates.empty();
            const bool only_mine = name_mine(candidates);
            choose(candidates);
            take(candidates);
            if (only_mine || left_some_) {
                break;  // The next look would find the same.
            }
        }
    }

    std::vector<ClaimedInstance> oldest_first() {
        std::vector<ClaimedInstance> sorted;
        sorted.reserve(claimed_.size());
        for (auto& [rank, instance] : claimed_) {
            sorted.push_back(std::move(instance));
        }
        return sorted;
    }

    [[nodiscard]] int wanted() const { return ask_.count - static_cast<int>(claimed_.size()); }
    [[nodiscard]] bool optimistic() const { return !tx_.dialect().locks_block; }

    std::vector<Candidate> find(const Ranges& ranges, bool pass_over_locked) {
        const auto& [a, b, c, d] = ranges;
        const int limit = optimistic() ? wanted() + spread_ : wanted();
        const sql::Rows rows = pass_over_locked ? tx_.query(statements::find_ready_unlocked,
                                                            limit,
                                                            a.low,
                                                            a.high,
                                                            b.low,
                                                            b.high,
                                                            c.low,
                                                            c.high,
                                                            d.low,
                                                            d.high,
                                                            wanted() + spare_candidates,
                                                            ask_.build)
                                                : tx_.query(statements::find_ready,
                                                            limit,
                                                            a.low,
                                                            a.high,
                                                            b.low,
                                                            b.high,
                                                            c.low,
                                                            c.high,
                                                            d.low,
                                                            d.high,
                                                            ask_.build);
        std::vector<Candidate> found;
        for (const sql::Row row : rows) {
            found.push_back(candidate(row));
            found.back().rank = ++found_;
        }
        return found;
    }

    void choose(std::vector<Candidate>& candidates) {
        // Concurrent claims see the same rows. What is claimed alone is the oldest: it has waited.
        if (optimistic() && spread_ > 0 && !ask_.alone) {
            begin_anywhere(candidates);
        }
        const auto room = static_cast<std::size_t>(std::clamp(wanted(), 0, left_));
        candidates.resize(std::min(candidates.size(), room));
        left_ -= static_cast<int>(candidates.size());
        // In the order in which every transaction changes several instances.
        std::ranges::sort(candidates, {}, [](const Candidate& one) -> const std::string& {
            return one.instance.instance;
        });
    }

    // Names those that the caller holds, and removes them. True: there were no others.
    bool name_mine(std::vector<Candidate>& candidates) {
        if (!ask_.mine || candidates.empty()) {
            return false;
        }
        std::vector<Candidate> others;
        for (Candidate& one : candidates) {
            if (!ask_.mine(one.instance.instance, one.seen)) {
                others.push_back(std::move(one));
            } else if (named_.insert(one.instance.instance).second) {  // It is found every time.
                one.instance.claimed = false;
                one.instance.token = one.seen;
                claimed_.emplace(one.rank, std::move(one.instance));
            }
        }
        candidates = std::move(others);
        return candidates.empty();
    }

    static Candidate candidate(const sql::Row& row) {
        Candidate found;
        found.instance.instance = row.get<std::string>(0);
        found.seen = row.get<Uuid>(1);
        found.instance.name = row.get<std::string>(2);
        found.instance.version = row.get<std::string>(3);
        found.instance.execution = row.get<ExecutionId>(4);
        found.instance.status = stored_status(row.get<std::string>(5));
        found.instance.last_event = row.get<EventId>(6);
        found.instance.now = moment(row.get<std::int64_t>(7));
        found.instance.blocked_tries =
            static_cast<int>(row.get<std::optional<std::int64_t>>(8).value_or(0));
        found.instance.token = Uuid::v4();
        return found;
    }

    void take(std::vector<Candidate>& candidates) {
        struct Taking {
            Candidate* candidate;
            sql::FenceAnswer fence;
            sql::Answer mail;
        };
        std::vector<Taking> takings;
        takings.reserve(candidates.size());
        for (Candidate& one : candidates) {
            const ClaimedInstance& instance = one.instance;
            takings.push_back({&one,
                               tx_.ask_fenced(instance_guard(instance.instance, one.seen),
                                              statements::claim_instance,
                                              instance.token,
                                              micros(ask_.lease)),
                               tx_.ask(statements::count_attempts,
                                       instance.instance,
                                       instance.token,
                                       mail_per_claim_max,
                                       attempts_max())});
        }
        for (Taking& taking : takings) {
            const sql::Rows mail = taking.mail.rows();
            if (!taking.fence.held()) {
                continue;  // Another claim was first.
            }
            if (mail.empty()) {
                if (!leave_for_later(*taking.candidate)) {
                    give_back(taking.candidate->instance);
                }
                continue;
            }
            ClaimedInstance& instance = taking.candidate->instance;
            for (const sql::Row row : mail) {
                instance.messages.push_back(inbox_message(row));
                instance.attempt = std::max(instance.attempt, instance.messages.back().attempt);
            }
            std::sort(instance.messages.begin(),
                      instance.messages.end(),
                      [](const auto& x, const auto& y) { return x.position < y.position; });
            claimed_.emplace(taking.candidate->rank, std::move(instance));
        }
    }

    [[nodiscard]] int attempts_max() const {
        return ask_.alone ? std::numeric_limits<int>::max() : ask_.attempts_shared_max;
    }

    // A process that dies takes down all its claims, and an attempt that was counted then does not
    // tell which of them killed it. An instance that was claimed often is therefore claimed alone:
    // from then on an attempt counts only against the instance that ran.
    bool leave_for_later(const Candidate& one) {
        const ClaimedInstance& instance = one.instance;
        if (tx_.query(statements::read_mail, instance.instance, 1).empty() ||
            !tx_.try_fenced(instance_guard(instance.instance, instance.token),
                            statements::release_instance,
                            Uuid::v4())) {
            return false;
        }
        left_some_ = true;
        ClaimedInstance left = instance;
        left.claimed = false;
        left.alone = true;
        claimed_.emplace(one.rank, std::move(left));
        return true;
    }

    // Its mailbox announces mail that is not there. If the fence fails, another claim was first.
    void give_back(const ClaimedInstance& instance) {
        if (!tx_.try_fenced(instance_guard(instance.instance, instance.token),
                            statements::release_instance,
                            Uuid::v4())) {
            return;
        }
        tx_.exec(statements::announce_mail, instance.instance, 0, -1);
        tx_.exec(statements::settle_mailbox, instance.instance);
    }

    sql::Tx& tx_;
    const ClaimInstances& ask_;
    int spread_;
    int left_;
    std::map<std::size_t, ClaimedInstance> claimed_;  // By the order they were found in.
    std::set<std::string> named_;
    std::size_t found_ = 0;
    bool left_some_ = false;  // Instances that have to be claimed alone.
};

}  // namespace

// On SQLite a read does not disturb the only writer, and an idle process must not write at all. On
// a server a separate read would be one more round trip.
bool SqlProvider::looks_first() const {
    return db_.dialect().embedded;
}

std::vector<ClaimedInstance> SqlProvider::claim_instances(const ClaimInstances& ask) {
    const std::vector<Ranges> ranges = ranges_of(ask.versions);
    if (ask.count < 1 || ranges.empty()) {
        return {};
    }
    if (looks_first()) {
        auto found = db_.transact("LookForMail", reading(), [&](sql::Tx& tx) {
            return Claimer(tx, ask, 0, 0).look(ranges);
        });
        if (found) {
            return std::move(*found);
        }
    }
    // A claim that is lost in a power cut only means that the mail is claimed again: the commit of
    // the turn that was computed under it fails, because its token is gone.
    ClaimSize size(instances_at_once_, claims_are_spread());
    auto claimed =
        db_.transact("ClaimInstances", writing(sql::Durability::relaxed), [&](sql::Tx& tx) {
            const int most = ask.alone ? 1 : size.next_try();
            return Claimer(tx, ask, options_.spare_candidates, most).claim(ranges);
        });
    size.won(std::ranges::count_if(claimed, &ClaimedInstance::claimed));
    return claimed;
}

std::optional<ClaimedInstance> SqlProvider::peek_instance(std::string_view instance,
                                                          const Uuid& token) {
    return db_.transact(
        "PeekInstance", reading(), [&](sql::Tx& tx) -> std::optional<ClaimedInstance> {
            sql::Answer row_answer = tx.ask(statements::peek_instance, instance, token);
            sql::Answer mail_answer = tx.ask(statements::read_mail, instance, mail_per_claim_max);
            const sql::Rows rows = row_answer.rows();
            const sql::Rows mail = mail_answer.rows();
            if (rows.empty()) {
                return std::nullopt;
            }
            const sql::Row row = rows[0];
            ClaimedInstance found;
            found.instance = instance;
            found.name = row.get<std::string>(0);
            found.version = row.get<std::string>(1);
            found.execution = row.get<ExecutionId>(2);
            found.status = stored_status(row.get<std::string>(3));
            found.last_event = row.get<EventId>(4);
            found.now = moment(row.get<std::int64_t>(5));
            found.token = token;
            for (const sql::Row message : mail) {
                found.messages.push_back(inbox_message(message));
                found.attempt = std::max(found.attempt, found.messages.back().attempt);
            }
            return found;
        });
}

LoadedHistory SqlProvider::load_history(std::string_view instance,
                                        ExecutionId execution,
                                        EventId after) {
    LoadedHistory history;
    std::vector<std::string> rows;
    db_.transact("LoadHistory", reading(), [&](sql::Tx& tx) {
        history.kv.clear();
        rows.clear();
        sql::Answer events =
            tx.ask(statements::read_history, instance, int64(execution), int64(after));
        sql::Answer seeds = tx.ask(statements::read_seeds, instance);
        for (const sql::Row row : events.rows()) {
            rows.push_back(row.get<std::string>(0));
        }
        for (const sql::Row row : seeds.rows()) {
            history.kv.emplace(row.get<std::string>(0), Payload{row.get<std::string>(1)});
        }
    });
    try {
        for (const std::string& lines : rows) {
            history.bytes += int64(lines.size()) + 1;
            for (Event& event : decode_events(lines)) {
                if (event.id > after) {
                    history.events.push_back(std::move(event));
                }
            }
        }
    } catch (const Undecodable& damaged) {
        history.events.clear();
        history.error = damaged.what();
    }
    return history;
}

bool SqlProvider::abandon_instance(const ClaimedInstance& claim,
                                   milliseconds delay,
                                   bool ignore_attempt) {
    std::vector<std::int64_t> positions;
    if (delay > milliseconds{0} || ignore_attempt) {
        for (const InboxMessage& message : claim.messages) {
            positions.push_back(message.position);
        }
    }
    const std::vector<Run> runs = runs_of(std::move(positions));
    const sql::Guard guard = instance_guard(claim.instance, claim.token);
    return db_.transact("AbandonInstance", writing(sql::Durability::relaxed), [&](sql::Tx& tx) {
        sql::FenceAnswer fence = tx.ask_fenced(guard, statements::release_instance, Uuid::v4());
        if (!runs.empty()) {
            tx.exec(statements::announce_mail, claim.instance, 0, -1);
        }
        if (!fence.held()) {
            return false;
        }
        for (const Run& run : runs) {
            tx.exec(statements::delay_messages,
                    claim.instance,
                    run.first,
                    run.last,
                    micros(delay),
                    ignore_attempt ? 1 : 0);
        }
        if (!runs.empty()) {
            tx.exec(statements::settle_mailbox, claim.instance);
        }
        if (delay <= milliseconds{0}) {
            wake(tx, wake_workflows);
        }
        return true;
    });
}

bool SqlProvider::renew_instance(std::string_view instance, const Uuid& token, milliseconds lease) {
    try {
        db_.run("RenewInstance",
                writing(sql::Durability::relaxed),
                instance_guard(instance, token),
                statements::renew_instance,
                micros(lease));
        return true;
    } catch (const sql::ConditionFailed&) {
        return false;
    }
}

Moment SqlProvider::now() {
    return moment(
        db_.run("ReadClock", reading(), statements::read_clock).rows[0].get<std::int64_t>(0));
}

std::optional<milliseconds> SqlProvider::until_next_work() {
    return db_.transact(
        "UntilNextWork", reading(), [&](sql::Tx& tx) -> std::optional<milliseconds> {
            sql::Answer mail = tx.ask(statements::next_mail);
            sql::Answer activity = tx.ask(statements::next_activity);
            std::optional<milliseconds> soonest;
            for (sql::Answer* answer : {&mail, &activity}) {
                const sql::Rows rows = answer->rows();
                const auto at_us = rows[0].get<std::optional<std::int64_t>>(0);
                if (!at_us) {
                    continue;
                }
                const auto now_us = rows[0].get<std::int64_t>(1);
                const auto wait = std::chrono::ceil<milliseconds>(
                    std::chrono::microseconds{std::max<std::int64_t>(*at_us - now_us, 0)});
                soonest = soonest ? std::min(*soonest, wait) : wait;
            }
            return soonest;
        });
}

}  // namespace holdfast::flow
