// Activities: how an attempt ends, and which are left.
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
#include "provider/turns.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

// Ends of activities in the order of their keys.
std::vector<std::size_t> by_key(std::span<const ActivityEnd> ends) {
    std::vector<std::size_t> order(ends.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t x, std::size_t y) {
        return std::tie(ends[x].key, x) < std::tie(ends[y].key, y);
    });
    return order;
}

sql::Answer ask_end(sql::Tx& tx, const ActivityKey& key, const Uuid& token) {
    const sql::Statement& statement =
        token == Uuid{} ? statements::end_free_activity : statements::end_activity;
    return tx.ask(statement, key.instance, int64(key.execution), int64(key.event), token);
}

// One call of end_activities: mailboxes first and then the activities, each in one order, which is
// also that of a commit of turns.
class ActivityEnds {
public:
    explicit ActivityEnds(std::span<const ActivityEnd> ends) : ends_(ends), order_(by_key(ends)) {
        for (const ActivityEnd& end : ends) {
            failures_.push_back(end.again ? encode(end.again->failure) : std::string{});
            answers_.push_back(end.answer
                                   ? std::optional<Letter>(Message{end.key.execution, *end.answer})
                                   : std::nullopt);
        }
    }

    Woken write(sql::Tx& tx, std::vector<bool>& held) const {
        Woken woken;
        held.assign(ends_.size(), false);
        std::map<std::string, sql::Answer> mailboxes;
        for (const auto& [instance, count] : counted()) {
            mailboxes.emplace(instance, tx.ask(statements::announce_mail, instance, count, 0));
        }
        std::vector<std::pair<std::size_t, sql::Answer>> ended;
        ended.reserve(order_.size());
        for (const std::size_t i : order_) {
            ended.emplace_back(i, ask(tx, i));
        }
        std::set<std::string> sessions;
        std::map<std::string, std::vector<Letter>> letters;
        for (auto& [i, answer] : ended) {
            const sql::Rows rows = answer.rows();
            held[i] = !rows.empty();
            if (!held[i]) {
                continue;
            }
            if (auto session = rows[0].get<std::optional<std::string>>(0)) {
                sessions.insert(std::move(*session));
            }
            const auto& again = ends_[i].again;
            woken.activities = woken.activities || (again && again->delay <= milliseconds{0});
            if (const std::optional<Letter>& letter = answers_[i]) {
                letters[ends_[i].key.instance].push_back(*letter);
            }
        }
        for (const auto& [instance, some] : letters) {
            const sql::Rows mailbox = mailboxes.at(instance).rows();
            if (!mailbox.empty()) {  // Else it has ended, and the answer is dropped.
                deliver(tx, instance, some, mailbox);
            }
        }
        for (const std::string& session : sessions) {
            tx.exec(statements::touch_session, session);
        }
        woken.workflows = !letters.empty();
        return woken;
    }

    // After a lost answer: the activities end in one transaction, so a row that is still there,
    // under any claim, shows that none has ended. The row of one that is retried is there in any
    // case: then its token decides.
    bool still_there(sql::Tx& tx, const std::vector<bool>& held) const {
        for (const std::size_t i : order_) {
            const ActivityKey& key = ends_[i].key;
            const sql::Rows rows = tx.query(
                statements::look_at_activity, key.instance, int64(key.execution), int64(key.event));
            const bool kept = !rows.empty() && ends_[i].again;
            if (held[i] && !rows.empty() && (!kept || rows[0].get<Uuid>(0) == ends_[i].token)) {
                return true;
            }
        }
        return false;
    }

private:
    [[nodiscard]] sql::Answer ask(sql::Tx& tx, std::size_t i) const {
        const ActivityEnd& end = ends_[i];
        if (!end.again) {
            return ask_end(tx, end.key, end.token);
        }
        return tx.ask(statements::await_attempt,
                      end.key.instance,
                      int64(end.key.execution),
                      int64(end.key.event),
                      end.token,
                      Uuid{},
                      micros(end.again->delay),
                      failures_[i]);
    }
    [[nodiscard]] std::map<std::string, std::int64_t> counted() const {
        std::map<std::string, std::int64_t> counts;
        for (const ActivityEnd& end : ends_) {
            if (end.answer) {
                ++counts[end.key.instance];
            }
        }
        return counts;
    }

    std::span<const ActivityEnd> ends_;
    std::vector<std::size_t> order_;
    std::vector<std::optional<Letter>> answers_;
    std::vector<std::string> failures_;  // Of those that are retried.
};

}  // namespace

std::optional<ActivityRetry> stored_retry(const std::optional<std::string>& text) {
    try {
        return text ? std::optional(decode_retry(*text)) : std::nullopt;
    } catch (const Undecodable&) {
        return std::nullopt;
    }
}

std::optional<FailureInfo> stored_failure(const std::optional<std::string>& text) {
    try {
        return text ? std::optional(decode_failure(*text)) : std::nullopt;
    } catch (const Undecodable&) {
        return std::nullopt;
    }
}

std::vector<bool> SqlProvider::end_activities(std::span<const ActivityEnd> ends) {
    try {
        return end_together(ends);
    } catch (const Error& error) {
        if (error.code() != Code::limit_exceeded || ends.size() < 2) {
            throw;
        }
    }
    // Together they exceed what the database accepts in one transaction.
    const std::size_t half = ends.size() / 2;
    std::vector<bool> held = end_activities(ends.first(half));
    const std::vector<bool> others = end_activities(ends.subspan(half));
    held.insert(held.end(), others.begin(), others.end());
    return held;
}

std::vector<bool> SqlProvider::end_together(std::span<const ActivityEnd> ends) {
    std::vector<bool> held(ends.size(), false);
    if (ends.empty()) {
        return held;
    }
    const ActivityEnds ending(ends);
    for (int broken = 0;; ++broken) {
        try {
            db_.transact("EndActivities", writing(), [&](sql::Tx& tx) {
                const Woken woken = ending.write(tx, held);
                if (woken.workflows) {
                    wake(tx, wake_workflows);
                }
                if (woken.activities) {
                    wake(tx, wake_activities);
                }
            });
            return held;
        } catch (const Error& error) {
            if (!connection_broke(error) || broken == broken_connections_max) {
                throw;
            }
            if (error.outcome() == Outcome::not_applied) {
                continue;
            }
        }
        const bool again = db_.transact(
            "FindEnds", writing(), [&](sql::Tx& tx) { return ending.still_there(tx, held); });
        if (!again) {
            return held;
        }
    }
}

bool SqlProvider::end_activity_in_transaction(const ActivityKey& key,
                                              const Uuid& token,
                                              const std::function<ActivityAnswer(sql::Tx&)>& body) {
    const auto attempt = [&] {
        return db_.transact("EndActivityInTransaction", writing(), [&](sql::Tx& tx) {
            const sql::Rows ended = ask_end(tx, key, token).rows();
            if (ended.empty()) {
                return false;
            }
            const ActivityAnswer answer = body(tx);
            const std::vector<Letter> letters{Letter{Message{key.execution, answer}}};
            const sql::Rows mailbox = tx.query(statements::announce_mail, key.instance, 1, 0);
            if (!mailbox.empty()) {
                deliver(tx, key.instance, letters, mailbox);
            }
            if (auto session = ended[0].get<std::optional<std::string>>(0)) {
                tx.exec(statements::touch_session, *session);
            }
            wake(tx, wake_workflows);
            return true;
        });
    };
    for (int broken = 0;; ++broken) {
        try {
            return attempt();
        } catch (const Error& error) {
            if (!connection_broke(error) || broken == broken_connections_max) {
                throw;
            }
            if (error.outcome() == Outcome::not_applied) {
                continue;
            }
        }
        const ActivityEnd end{.key = key, .token = token};
        const bool again = db_.transact("FindEnds", writing(), [&](sql::Tx& tx) {
            return ActivityEnds(std::span(&end, 1)).still_there(tx, {true});
        });
        if (!again) {
            return true;
        }
    }
}

std::vector<PendingActivity> SqlProvider::activities(std::string_view instance, int limit) {
    const sql::Rows rows =
        db_.run("ListActivities", reading(), statements::list_activities, instance, Uuid{}, limit)
            .rows;
    std::vector<PendingActivity> found;
    for (const sql::Row row : rows) {
        PendingActivity one;
        one.key = {std::string(instance), row.get<ExecutionId>(0), row.get<EventId>(1)};
        one.name = row.get<std::string>(2);
        if (auto tag = row.get<std::string>(3); !tag.empty()) {
            one.tag = std::move(tag);
        }
        one.session = row.get<std::optional<std::string>>(4);
        one.running = row.get<std::int64_t>(5) != 0;
        one.attempt = row.get<int>(6) + (one.running ? 0 : 1);
        one.due = moment(row.get<std::int64_t>(7));
        one.queued = moment(std::abs(row.get<std::int64_t>(8)));
        one.retry = stored_retry(row.get<std::optional<std::string>>(9));
        one.failures = row.get<int>(10);
        one.last_failure = stored_failure(row.get<std::optional<std::string>>(11));
        if (auto heartbeat = row.get<std::optional<std::string>>(12)) {
            one.heartbeat = Payload{std::move(*heartbeat)};
        }
        one.now = moment(row.get<std::int64_t>(13));
        found.push_back(std::move(one));
    }
    return found;
}

}  // namespace holdfast::flow
