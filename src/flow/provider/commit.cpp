// Committing turns: tokens, conflicts, and commits whose answer was lost.
#include <algorithm>
#include <set>

#include "provider/columns.hpp"
#include "provider/statements_admin.hpp"
#include "provider/turns.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/sql/error.hpp>

namespace holdfast::flow {
namespace {

bool rise_above(const std::vector<Event>& events, EventId last) {
    return std::all_of(events.begin(), events.end(), [&](const Event& event) {
        const bool rises = event.id > last;
        last = event.id;
        return rises;
    });
}

bool has_good_ids(const TurnCommit& turn) {
    if (turn.creates && (turn.last_event != 0 || turn.next)) {
        return false;
    }
    return rise_above(turn.events, turn.last_event) &&
           (!turn.next || (rise_above(turn.next->events, 0) &&
                           turn.next->events.empty() == turn.next->start.has_value() &&
                           turn.next->execution > turn.execution));
}

void require_names(const TurnCommit& turn) {
    require_instance_id(turn.instance);
    for (const OutgoingMessage& message : turn.messages) {
        require_instance_id(message.instance);
    }
    for (const OutgoingStart& start : turn.starts) {
        require_instance_id(start.instance);
        require_name(start.start.name, "the name of a workflow");
    }
    for (const ActivityTask& task : turn.activities) {
        require_name(task.name, "the name of an activity");
    }
}

// One call of commit_turns.
class Commit {
public:
    Commit(sql::Database& db, std::span<const TurnCommit> turns) : db_(db), turns_(turns) {}

    // `Write` commits a batch as one transaction, `Options` are for reading.
    template <class Write, class Options>
    std::vector<Committed> run(Write&& write, Options&& options) {
        results_.assign(turns_.size(), Committed::lost);
        for (std::vector<std::size_t>& group : groups()) {
            commit_group(std::move(group), write, options);
        }
        return std::move(results_);
    }

private:
    // Turns of one instance follow each other in transactions of their own.
    std::vector<std::vector<std::size_t>> groups() {
        std::vector<std::vector<std::size_t>> groups(1);
        std::set<std::string_view> present;
        for (std::size_t i = 0; i < turns_.size(); ++i) {
            if (!present.insert(turns_[i].instance).second) {
                groups.emplace_back();
                present = {turns_[i].instance};
            }
            groups.back().push_back(i);
        }
        return groups;
    }

    template <class Write, class Options>
    void commit_group(std::vector<std::size_t> group, Write& write, Options& options) {
        for (std::size_t i = 0; i < group.size();) {
            if (has_good_ids(turns_[group[i]])) {
                ++i;
                continue;
            }
            results_[group[i]] = why_refused(turns_[group[i]], options());
            group.erase(group.begin() + static_cast<std::ptrdiff_t>(i));
        }
        int broken = 0;
        while (!group.empty()) {
            std::vector<const TurnCommit*> batch;
            batch.reserve(group.size());
            for (const std::size_t index : group) {
                batch.push_back(&turns_[index]);
            }
            try {
                write(TurnBatch(batch));
                return settle(group, Committed::yes);
            } catch (const TurnRefused& refused) {
                // Nothing was written. The other turns are committed without it.
                const auto at = group.begin() + static_cast<std::ptrdiff_t>(refused.turn);
                results_[*at] = why_refused(turns_[*at], options());
                group.erase(at);
            } catch (const Error& error) {
                if (sql::classify(error) == sql::ErrorClass::duplicate) {
                    return commit_alone(group, write, options);
                }
                if (error.code() == Code::limit_exceeded) {
                    return commit_halves(group, write, options);
                }
                if (!connection_broke(error) || ++broken > broken_connections_max) {
                    throw;
                }
                if (error.outcome() == Outcome::unknown && happened(group, options())) {
                    return settle(group, Committed::yes);
                }
            }
        }
    }

    // An event id of one turn is taken. Each turn commits alone, so that only that one fails.
    template <class Write, class Options>
    void commit_alone(const std::vector<std::size_t>& group, Write& write, Options& options) {
        if (group.size() == 1) {
            return settle(group, Committed::rejected);
        }
        for (const std::size_t index : group) {
            commit_group({index}, write, options);
        }
    }

    // Together they exceed what the database accepts in one transaction.
    template <class Write, class Options>
    void commit_halves(const std::vector<std::size_t>& group, Write& write, Options& options) {
        if (group.size() == 1) {
            return settle(group, Committed::too_large);
        }
        const auto half = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
        commit_group({group.begin(), half}, write, options);
        commit_group({half, group.end()}, write, options);
    }

    void settle(const std::vector<std::size_t>& group, Committed result) {
        for (const std::size_t index : group) {
            results_[index] = result;
        }
    }

    // A turn that names the current token was refused because its execution, last event or ids are
    // wrong. A finished activity whose row is gone counts as a lost claim, too.
    Committed why_refused(const TurnCommit& turn, const sql::TxOptions& options) {
        return db_.transact("WhyRefused", options, [&](sql::Tx& tx) {
            if (turn.creates) {
                // An earlier commit whose answer was lost may have arrived since: then the
                // existing row is its own.
                const sql::Rows existing = tx.query(statements::find_origin, turn.instance);
                return !existing.empty() && existing[0].get<Uuid>(0) == turn.next_token
                           ? Committed::yes
                           : Committed::lost;
            }
            const sql::Rows rows = tx.query(statements::look_at_turn, turn.instance);
            if (rows.empty() || rows[0].get<Uuid>(0) != turn.token ||
                (turn.leased && !rows[0].get<bool>(1))) {
                return Committed::lost;
            }
            const sql::Rows current = tx.query(statements::current_execution, turn.instance);
            const bool believes =
                current[0].get<ExecutionId>(0) == turn.execution &&
                (turn.events.empty() || current[0].get<EventId>(4) == turn.last_event);
            return believes && has_good_ids(turn) ? Committed::lost : Committed::rejected;
        });
    }

    // Whether a commit whose answer was lost is in the database. The turns were one transaction, so
    // one stored turn proves all.
    bool happened(const std::vector<std::size_t>& group, const sql::TxOptions& options) {
        return db_.transact("FindCommit", options, [&](sql::Tx& tx) {
            for (const std::size_t index : group) {
                const TurnCommit& turn = turns_[index];
                const sql::Rows row = tx.query(statements::look_at_turn, turn.instance);
                if (!row.empty() && row[0].get<Uuid>(0) == turn.next_token) {
                    return true;
                }
                if (turn.events.empty()) {
                    continue;
                }
                const sql::Rows written = tx.query(statements::who_wrote,
                                                   turn.instance,
                                                   int64(turn.execution),
                                                   int64(turn.events.front().id));
                if (!written.empty() && written[0].get<Uuid>(0) == turn.next_token) {
                    return true;
                }
            }
            return false;
        });
    }

    sql::Database& db_;
    std::span<const TurnCommit> turns_;
    std::vector<Committed> results_;
};

}  // namespace

std::vector<Committed> SqlProvider::commit_turns(std::span<const TurnCommit> turns) {
    std::for_each(turns.begin(), turns.end(), require_names);
    const auto write = [&](const TurnBatch& batch) {
        db_.transact("CommitTurns", writing(), [&](sql::Tx& tx) {
            const Woken woken = batch.write(tx);
            if (woken.workflows) {
                wake(tx, wake_workflows);
            }
            if (woken.activities) {
                wake(tx, wake_activities);
            }
        });
    };
    return Commit(db_, turns).run(write, [&] { return writing(); });
}

}  // namespace holdfast::flow
