// Activities: which worker runs which, and for how long.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "provider/columns.hpp"
#include "provider/mail.hpp"
#include "provider/statements.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/flow/sql_provider.hpp>

namespace holdfast::flow {
namespace {

constexpr int claim_rounds_max = 8;
constexpr std::size_t filter_tags_max = 6;  // Five and the empty one.
constexpr int tags_looked_at_max = 64;

struct Tags {
    bool any = false;
    std::vector<std::string> names;  // Not empty unless any; the empty name is "untagged".
};

Tags tags_of(const TagFilter& filter) {
    Tags tags{.any = filter.any, .names = filter.tags};
    if (filter.untagged) {
        tags.names.emplace_back();
    }
    std::ranges::sort(tags.names);
    tags.names.erase(std::ranges::unique(tags.names).begin(), tags.names.end());
    if (tags.names.size() > filter_tags_max) {
        throw InvalidArgument(fmt::format("a worker's filter has {} tags; give it at most {}",
                                          filter.tags.size(),
                                          filter_tags_max - 1));
    }
    return tags;
}

// One call of claim_activities, inside one transaction.
class Claimer {
public:
    // Takes `most` at most.
    Claimer(sql::Tx& tx, const ClaimActivities& ask, const Tags& tags, int spread, int most)
        : tx_(tx), ask_(ask), tags_(tags), spread_(spread), count_(std::min(ask.count, most)) {}

    std::vector<ClaimedActivity> claim() {
        for (int round = 0; round < claim_rounds_max && wanted() > 0; ++round) {
            std::vector<ClaimedActivity> candidates = find();
            leave_further_sessions(candidates);
            leave_what_cannot_begin(candidates);
            const std::size_t found = candidates.size();
            const std::size_t before = claimed_.size();
            keep_own_sessions(candidates);
            take(candidates);
            if (claimed_.size() - before == found) {
                break;  // No other claim was first anywhere, so there are no more.
            }
        }
        return std::move(claimed_);
    }

private:
    [[nodiscard]] int wanted() const { return count_ - static_cast<int>(claimed_.size()); }
    // How many more of those that must begin at once.
    [[nodiscard]] std::int64_t can_begin() const {
        return ask_.begin_now - std::ranges::count_if(claimed_, [](const ClaimedActivity& one) {
                   return one.task.must_begin;
               });
    }

    std::vector<ClaimedActivity> find() {
        const bool optimistic = !tx_.dialect().locks_block;
        std::vector<ClaimedActivity> found = query(optimistic ? ask_.count + spread_ : wanted());
        if (optimistic && spread_ > 0) {
            found = spread(std::move(found));
        }
        found.resize(std::min(found.size(), static_cast<std::size_t>(wanted())));
        return found;
    }

    // Concurrent claims see the same rows, and a lost race costs a whole transaction: begins at a
    // random row, and keeps the order within a session.
    static std::vector<ClaimedActivity> spread(std::vector<ClaimedActivity> found) {
        std::vector<std::size_t> order(found.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        begin_anywhere(order);
        std::map<std::string_view, std::vector<std::size_t>> places;
        for (std::size_t place = 0; place < order.size(); ++place) {
            if (const auto& session = found[order[place]].task.session) {
                places[*session].push_back(place);
            }
        }
        for (const auto& [session, own] : places) {
            std::vector<std::size_t> members;
            for (const std::size_t place : own) {
                members.push_back(order[place]);
            }
            std::ranges::sort(members);
            for (std::size_t i = 0; i < own.size(); ++i) {
                order[own[i]] = members[i];
            }
        }
        std::vector<ClaimedActivity> result;
        result.reserve(found.size());
        for (const std::size_t index : order) {
            result.push_back(std::move(found[index]));
        }
        return result;
    }

    // Tag by tag, because the index begins with the tag; the oldest of all first.
    std::vector<ClaimedActivity> query(int limit) {
        const std::string owner = ask_.session ? ask_.session->owner : "";
        std::vector<sql::Answer> answers;
        for (const std::string& tag : tags_.any ? waiting_tags() : tags_.names) {
            answers.push_back(
                tx_.ask(statements::find_activities, limit, owner, tag, can_begin() > 0));
        }
        std::vector<std::pair<std::int64_t, ClaimedActivity>> found;
        for (sql::Answer& answer : answers) {
            for (const sql::Row row : answer.rows()) {
                found.emplace_back(row.get<std::int64_t>(12), candidate(row));
            }
        }
        std::ranges::sort(found, {}, [](const auto& one) {
            const ActivityKey& key = one.second.task.key;
            return std::tuple(one.first, key.event, std::string_view(key.instance));
        });
        std::vector<ClaimedActivity> oldest;
        oldest.reserve(found.size());
        for (auto& [available_us, one] : found) {
            oldest.push_back(std::move(one));
        }
        return oldest;
    }

    std::vector<std::string> waiting_tags() {
        std::vector<std::string> tags;
        for (const sql::Row row : tx_.query(statements::activity_tags, tags_looked_at_max)) {
            tags.push_back(row.get<std::string>(0));
        }
        return tags;
    }

    static ClaimedActivity candidate(const sql::Row& row) {
        ClaimedActivity found;
        found.task.key = {row.get<std::string>(0), row.get<ExecutionId>(1), row.get<EventId>(2)};
        found.task.name = row.get<std::string>(3);
        found.task.input.json = row.get<std::string>(4);
        found.task.workflow = row.get<std::string>(5);
        found.task.version = row.get<std::string>(6);
        if (auto tag = row.get<std::string>(7); !tag.empty()) {
            found.task.tag = std::move(tag);
        }
        found.task.session = row.get<std::optional<std::string>>(8);
        found.token = row.get<Uuid>(9);  // The one it is claimed from.
        if (auto heartbeat = row.get<std::optional<std::string>>(10)) {
            found.heartbeat = Payload{std::move(*heartbeat)};
        }
        found.now = moment(row.get<std::int64_t>(11));
        const auto queued_us = row.get<std::int64_t>(13);
        found.queued = moment(std::abs(queued_us));
        found.task.must_begin = queued_us < 0;
        found.unserved_tries =
            static_cast<int>(std::abs(row.get<std::optional<std::int64_t>>(14).value_or(0)));
        found.task.retry = stored_retry(row.get<std::optional<std::string>>(15));
        found.failures = row.get<int>(16);
        found.last_failure = stored_failure(row.get<std::optional<std::string>>(17));
        found.task.ahead =
            std::max(*found.queued - moment(row.get<std::int64_t>(12)), milliseconds{0});
        return found;
    }

    // Sessions beyond the requested number are left to other workers.
    void leave_further_sessions(std::vector<ClaimedActivity>& candidates) {
        if (!ask_.session) {
            return;
        }
        std::erase_if(candidates, [this](const ClaimedActivity& one) {
            if (!one.task.session || sessions_.contains(*one.task.session)) {
                return false;
            }
            if (std::cmp_greater_equal(sessions_.size(), ask_.session->count)) {
                return true;
            }
            sessions_.insert(*one.task.session);
            return false;
        });
    }

    // Those beyond the number that can begin at once wait for a free worker.
    void leave_what_cannot_begin(std::vector<ClaimedActivity>& candidates) const {
        std::int64_t left = can_begin();
        std::erase_if(candidates, [&](const ClaimedActivity& one) {
            return one.task.must_begin && --left < 0;
        });
    }

    // A session belongs to one worker at a time: those just claimed by another are left to it.
    void keep_own_sessions(std::vector<ClaimedActivity>& candidates) {
        std::map<std::string, bool> own;  // In one order, as in every claim of several.
        for (const ClaimedActivity& one : candidates) {
            if (one.task.session) {
                own.emplace(*one.task.session, false);
            }
        }
        if (own.empty() || !ask_.session) {
            return;
        }
        std::vector<std::pair<bool*, sql::Answer>> answers;
        answers.reserve(own.size());
        for (auto& [session, is_own] : own) {
            answers.emplace_back(&is_own,
                                 tx_.ask(statements::claim_session,
                                         session,
                                         ask_.session->owner,
                                         micros(ask_.session->lease)));
        }
        for (auto& [is_own, answer] : answers) {
            *is_own = !answer.rows().empty();
        }
        std::erase_if(candidates, [&](const ClaimedActivity& one) {
            return one.task.session && !own.at(*one.task.session);
        });
    }

    void take(std::vector<ClaimedActivity>& candidates) {
        std::vector<sql::Answer> answers;
        answers.reserve(candidates.size());
        for (ClaimedActivity& one : candidates) {
            const Uuid seen = std::exchange(one.token, Uuid::v4());
            answers.push_back(tx_.ask(statements::claim_activity,
                                      one.task.key.instance,
                                      int64(one.task.key.execution),
                                      int64(one.task.key.event),
                                      seen,
                                      one.token,
                                      micros(ask_.lease)));
        }
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            const sql::Rows rows = answers[i].rows();
            if (!rows.empty()) {
                candidates[i].attempt = rows[0].get<int>(0);
                claimed_.push_back(std::move(candidates[i]));
            }
        }
    }

    sql::Tx& tx_;
    const ClaimActivities& ask_;
    const Tags& tags_;
    int spread_;
    int count_;
    std::set<std::string> sessions_;  // Tried so far.
    std::vector<ClaimedActivity> claimed_;
};

}  // namespace

std::vector<ClaimedActivity> SqlProvider::claim_activities(const ClaimActivities& ask) {
    const Tags tags = tags_of(ask.tags);
    if (ask.session && ask.session->owner.empty()) {
        throw InvalidArgument("a worker that takes sessions has no name; give it one");
    }
    if (ask.count < 1 || (!tags.any && tags.names.empty())) {
        return {};
    }
    if (looks_first()) {
        const sql::Rows rows =
            db_.run("LookForActivities", reading(), statements::earliest_activity).rows;
        const auto at_us = rows[0].get<std::optional<std::int64_t>>(0);
        if (!at_us || *at_us > rows[0].get<std::int64_t>(1)) {
            return {};
        }
    }
    ClaimSize size(activities_at_once_, claims_are_spread());
    auto claimed =
        db_.transact("ClaimActivities", writing(sql::Durability::relaxed), [&](sql::Tx& tx) {
            return Claimer(tx, ask, tags, options_.spare_candidates, size.next_try()).claim();
        });
    size.won(int64(claimed.size()));
    return claimed;
}

bool SqlProvider::abandon_activity(const ActivityKey& key,
                                   const Uuid& token,
                                   milliseconds delay,
                                   bool ignore_attempt) {
    return db_.transact("AbandonActivity", writing(sql::Durability::relaxed), [&](sql::Tx& tx) {
        const bool held = tx.count(statements::release_activity,
                                   key.instance,
                                   int64(key.execution),
                                   int64(key.event),
                                   token,
                                   Uuid{},
                                   micros(delay),
                                   ignore_attempt ? 1 : 0) == 1;
        if (held && delay <= milliseconds{0}) {
            wake(tx, wake_activities);
        }
        return held;
    });
}

std::vector<bool> SqlProvider::renew_activities(std::span<const std::pair<ActivityKey, Uuid>> held,
                                                milliseconds lease) {
    std::vector<std::size_t> order(held.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
        return held[x].first < held[y].first;
    });
    if (held.empty()) {
        return {};
    }
    return db_.transact("RenewActivities", writing(sql::Durability::relaxed), [&](sql::Tx& tx) {
        std::vector<std::pair<std::size_t, sql::Answer>> answers;
        answers.reserve(order.size());
        for (const std::size_t i : order) {
            const auto& [key, token] = held[i];
            answers.emplace_back(i,
                                 tx.ask(statements::renew_activity,
                                        key.instance,
                                        int64(key.execution),
                                        int64(key.event),
                                        token,
                                        micros(lease)));
        }
        std::vector<bool> renewed(held.size(), false);
        std::set<std::string> sessions;
        for (auto& [i, answer] : answers) {
            const sql::Rows rows = answer.rows();
            renewed[i] = !rows.empty();
            if (renewed[i]) {
                if (auto session = rows[0].get<std::optional<std::string>>(0)) {
                    sessions.insert(std::move(*session));
                }
            }
        }
        for (const std::string& session : sessions) {
            tx.exec(statements::touch_session, session);
        }
        return renewed;
    });
}

bool SqlProvider::heartbeat(const ActivityKey& key, const Uuid& token, const Payload& progress) {
    return db_.run("Heartbeat",
                   writing(sql::Durability::relaxed),
                   statements::keep_heartbeat,
                   key.instance,
                   int64(key.execution),
                   int64(key.event),
                   token,
                   progress.json)
               .changed == 1;
}

int SqlProvider::renew_sessions(std::span<const std::string> owners,
                                milliseconds lease,
                                milliseconds idle) {
    const std::set<std::string> once(owners.begin(), owners.end());
    if (once.empty()) {
        return 0;
    }
    return db_.transact("RenewSessions", writing(sql::Durability::relaxed), [&](sql::Tx& tx) {
        std::vector<sql::Answer> answers;
        answers.reserve(once.size());
        for (const std::string& owner : once) {
            answers.push_back(
                tx.ask(statements::renew_sessions, owner, micros(lease), micros(idle)));
        }
        int renewed = 0;
        for (sql::Answer& answer : answers) {
            renewed += static_cast<int>(answer.rows().size());
        }
        return renewed;
    });
}

int SqlProvider::sweep_sessions() {
    return static_cast<int>(
        db_.run("SweepSessions", writing(sql::Durability::relaxed), statements::sweep_sessions)
            .changed);
}

}  // namespace holdfast::flow
