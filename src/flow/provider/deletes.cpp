#include "provider/deletes.hpp"

#include <set>

#include "provider/columns.hpp"
#include "provider/statements_admin.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {

std::optional<LockedInstance> lock_instance(sql::Tx& tx, std::string_view instance) {
    const sql::Rows rows = tx.query(statements::lock_instance, instance);
    if (rows.empty()) {
        return std::nullopt;
    }
    return LockedInstance{.instance = std::string(instance),
                          .token = rows[0].get<Uuid>(0),
                          .status = stored_status(rows[0].get<std::string>(1)),
                          .parent = rows[0].get<std::optional<std::string>>(2),
                          .execution = rows[0].get<ExecutionId>(3)};
}

std::vector<std::string> children_of(sql::Tx& tx, std::string_view instance) {
    std::vector<std::string> children;
    for (const sql::Row row : tx.query(statements::list_children, instance)) {
        children.push_back(row.get<std::string>(0));
    }
    return children;
}

std::vector<std::string> tree_of(sql::Tx& tx, std::string_view root) {
    std::vector<std::string> found{std::string(root)};
    std::set<std::string> known{found.front()};
    for (std::size_t i = 0; i < found.size(); ++i) {
        for (std::string& child : children_of(tx, found[i])) {
            if (known.insert(child).second) {
                found.push_back(std::move(child));
            }
        }
    }
    return found;
}

std::vector<LockedInstance> lock_tree(sql::Tx& tx, std::string_view root) {
    std::vector<std::string> found{std::string(root)};
    std::set<std::string> known{found.front()};
    std::vector<LockedInstance> locked;
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (auto instance = lock_instance(tx, found[i])) {
            locked.push_back(std::move(*instance));
        }
        for (std::string& child : children_of(tx, found[i])) {
            if (known.insert(child).second) {
                found.push_back(std::move(child));
            }
        }
    }
    if (locked.empty() || locked.front().instance != root) {
        throw Error(Code::not_found,
                    Outcome::not_applied,
                    fmt::format("there is no workflow '{}'; check its id", root));
    }
    return locked;
}

DeleteCounts delete_instance(sql::Tx& tx, const LockedInstance& instance) {
    const std::string& id = instance.instance;
    tx.fenced(instance_guard(id, instance.token), statements::delete_instance);
    tx.exec(statements::close_mailbox, id);
    sql::Answer messages = tx.ask(statements::delete_messages, id);
    sql::Answer executions = tx.ask(statements::delete_executions, id);
    sql::Answer history = tx.ask(statements::delete_history, id);
    tx.exec(statements::drop_activities, id);
    tx.exec(statements::delete_kv, id);
    tx.exec(statements::delete_attributes, id);
    DeleteCounts counts{.instances = 1};
    counts.messages = int64(messages.rows().size());
    counts.executions = int64(executions.rows().size()) + 1;
    for (const sql::Row row : history.rows()) {
        counts.events += row.get<std::int64_t>(0);
    }
    return counts;
}

namespace {

constexpr int executions_per_look = 64;

int budget_after(int budget, const sql::Rows& deleted) {
    return budget - static_cast<int>(deleted.size());
}

std::int64_t events_of(const sql::Rows& history) {
    std::int64_t events = 0;
    for (const sql::Row row : history) {
        events += row.get<std::int64_t>(0);
    }
    return events;
}

// Some rows of an instance that is too large for one transaction.
DeleteCounts shrink(sql::Tx& tx, const std::string& id, int budget) {
    DeleteCounts counts;
    const sql::Rows history = tx.query(statements::shrink_history, id, budget);
    counts.events = events_of(history);
    budget = budget_after(budget, history);
    if (budget > 0) {
        const sql::Rows messages = tx.query(statements::shrink_messages, id, budget);
        counts.messages = int64(messages.size());
        budget = budget_after(budget, messages);
    }
    if (budget > 0) {
        budget = budget_after(budget, tx.query(statements::shrink_activities, id, budget));
    }
    if (budget > 0) {
        counts.executions = int64(tx.query(statements::shrink_executions, id, budget).size());
    }
    return counts;
}

// Several instances that are deleted one after the other, because together they are too many rows.
class SlowDeletion {
public:
    SlowDeletion(const Transact& transact, int rows_max)
        : transact_(transact), rows_max_(rows_max) {}

    // Ends every instance that has not ended; it keeps the token that it gets here. False: there
    // are more; call again.
    bool end_all(sql::Tx& tx, std::vector<LockedInstance>& chosen) const {
        int budget = rows_max_;
        for (LockedInstance& one : chosen) {
            if (is_final(one.status)) {
                continue;
            }
            if (budget < rows_to_end) {
                return false;
            }
            budget -= rows_to_end;
            const FailureInfo failure{.kind = FailureKind::cancelled,
                                      .type = "Deleted",
                                      .message = "it was deleted by force",
                                      .retryable = false};
            const Uuid token = Uuid::v4();
            tx.fenced(instance_guard(one.instance, one.token),
                      statements::end_for_deletion,
                      token,
                      encode(failure));
            tx.exec(statements::close_mailbox, one.instance);
            one.token = token;
            one.status = Status::cancelled;
        }
        return true;
    }

    // Children before their parents.
    DeleteCounts run(const std::vector<LockedInstance>& chosen) const {
        DeleteCounts counts;
        for (auto one = chosen.rbegin(); one != chosen.rend(); ++one) {
            while (!delete_some(*one, counts)) {
            }
        }
        return counts;
    }

private:
    static constexpr int rows_to_end = 2;  // The instance and its mailbox.

    // True once it is gone.
    bool delete_some(const LockedInstance& one, DeleteCounts& counts) const {
        bool gone = false;
        DeleteCounts some;
        transact_([&](sql::Tx& tx) {
            some = {};
            const auto locked = lock_instance(tx, one.instance);
            gone = !locked || locked->token != one.token;  // A new one of the same id.
            if (gone) {
                return;
            }
            gone = tx.query(statements::count_rows, one.instance)[0].get<std::int64_t>(0) <
                   rows_max_ - rows_to_end;
            some = gone ? delete_instance(tx, *locked) : shrink(tx, one.instance, rows_max_);
        });
        counts += some;
        return gone;
    }

    const Transact& transact_;
    int rows_max_;
};

}  // namespace

DeleteCounts delete_chosen(const Transact& transact,
                           const std::function<std::vector<LockedInstance>(sql::Tx&)>& choose,
                           int rows_max) {
    const SlowDeletion slowly(transact, rows_max);
    std::vector<LockedInstance> chosen;
    DeleteCounts counts;
    bool done = false;
    for (bool ready = false; !ready;) {
        transact([&](sql::Tx& tx) {
            counts = {};
            chosen = choose(tx);
            std::int64_t rows = 0;
            for (const LockedInstance& one : chosen) {
                rows += 2 + tx.query(statements::count_rows, one.instance)[0].get<std::int64_t>(0);
            }
            done = rows <= rows_max;
            ready = done || slowly.end_all(tx, chosen);
            if (!done) {
                return;
            }
            for (const LockedInstance& one : chosen) {
                counts += delete_instance(tx, one);
            }
        });
    }
    return done ? counts : slowly.run(chosen);
}

DeleteCounts prune_instance(const Transact& transact,
                            std::string_view instance,
                            std::int64_t keep,
                            std::int64_t before_us,
                            int rows_max) {
    DeleteCounts counts;
    for (bool more = true; more;) {
        DeleteCounts some;
        transact([&](sql::Tx& tx) {
            some = {};
            const sql::Rows current = tx.query(statements::current_execution, instance);
            if (current.empty()) {
                throw Error(Code::not_found,
                            Outcome::not_applied,
                            fmt::format("there is no workflow '{}'; check its id", instance));
            }
            const std::int64_t newest = current[0].get<std::int64_t>(0) - keep;
            const sql::Rows found = tx.query(
                statements::find_prunable, instance, newest, before_us, executions_per_look);
            more = found.size() == static_cast<std::size_t>(executions_per_look);
            int budget = rows_max;
            for (const sql::Row row : found) {
                const auto execution = row.get<std::int64_t>(0);
                const sql::Rows history =
                    tx.query(statements::prune_history, instance, execution, budget);
                some.events += events_of(history);
                budget = budget_after(budget, history);
                if (budget <= 0) {  // Its own row goes last, with the next transaction.
                    more = true;
                    return;
                }
                tx.exec(statements::prune_execution, instance, execution);
                --budget;
                ++some.executions;
            }
        });
        counts += some;
    }
    return counts;
}

DeleteCounts& operator+=(DeleteCounts& sum, const DeleteCounts& more) {
    sum.instances += more.instances;
    sum.executions += more.executions;
    sum.events += more.events;
    sum.messages += more.messages;
    return sum;
}

}  // namespace holdfast::flow
