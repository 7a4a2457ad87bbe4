// Administration: looking at many instances, and removing them.
#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <set>

#include "provider/columns.hpp"
#include "provider/deletes.hpp"
#include "provider/statements_admin.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

constexpr std::size_t attributes_max = 4;
constexpr int page_max = 1000;
constexpr int sweep_max = 500;
constexpr std::int64_t forever_us = std::numeric_limits<std::int64_t>::max();

// The last instance of a page, as "<created_us>:<id>".
struct PageEnd {
    std::int64_t created_us = forever_us;
    std::string instance{};
};

PageEnd parse_page(const std::string& page) {
    if (page.empty()) {
        return {};
    }
    PageEnd end;
    const char* const stop = page.data() + page.size();
    const auto [rest, failure] = std::from_chars(page.data(), stop, end.created_us);
    if (failure != std::errc{} || rest == stop || *rest != ':') {
        throw InvalidArgument("the page is not valid; use `next` of the page before");
    }
    end.instance.assign(rest + 1, stop);
    return end;
}

std::string_view status_condition(const ListInstances& ask) {
    if (ask.blocked || ask.suspended) {
        return ask.blocked ? "blocked" : "suspended";
    }
    return ask.status ? to_string(*ask.status) : std::string_view{};
}

[[noreturn]] void no_such_instance(std::string_view instance) {
    throw Error(Code::not_found,
                Outcome::not_applied,
                fmt::format("there is no workflow '{}'; check its id", instance));
}

[[noreturn]] void refuse(std::string message) {
    throw Error(Code::condition_failed, Outcome::not_applied, std::move(message));
}

void require_ended(const LockedInstance& instance, bool force) {
    if (!force && !is_final(instance.status)) {
        refuse(fmt::format("workflow '{}' has not ended; cancel it, or delete it by force",
                           instance.instance));
    }
}

// A child is deleted with its root. One whose parent is gone counts as a root.
void require_no_parent(sql::Tx& tx,
                       const LockedInstance& instance,
                       const std::set<std::string>& deleted) {
    if (instance.parent && !deleted.contains(*instance.parent) &&
        tx.query(statements::instance_exists, *instance.parent)[0].get<bool>(0)) {
        refuse(fmt::format("workflow '{}' is a child of '{}'; delete its root",
                           instance.instance,
                           *instance.parent));
    }
}

ExecutionInfo execution_info(const sql::Row& row) {
    ExecutionInfo info;
    info.execution = row.get<ExecutionId>(0);
    info.version = row.get<std::string>(1);
    info.status = stored_status(row.get<std::string>(2));
    info.output = row.get<std::optional<std::string>>(3).value_or("");
    info.last_event = row.get<EventId>(4);
    if (const auto started = row.get<std::optional<std::int64_t>>(5)) {
        info.started = moment(*started);
    }
    if (const auto completed = row.get<std::optional<std::int64_t>>(6)) {
        info.completed = moment(*completed);
    }
    return info;
}

// What the last event of an imported history says about it.
struct ImportedEnd {
    Status status = Status::running;
    std::optional<std::string> output{};
};

ImportedEnd imported_end_of(const Event& last) {
    if (const auto* completed = std::get_if<WorkflowCompleted>(&last.body)) {
        return {.status = Status::completed, .output = completed->output.json};
    }
    if (const auto* failed = std::get_if<WorkflowFailed>(&last.body)) {
        const bool cancelled = failed->failure.kind == FailureKind::cancelled;
        return {.status = cancelled ? Status::cancelled : Status::failed,
                .output = encode(failed->failure)};
    }
    return {};
}

// The state that is visible at its end. An erased key is present, without a value.
struct StateAfter {
    std::map<std::string, std::optional<std::string>> keys;
    std::map<std::string, std::optional<std::string>> attributes;
    std::optional<std::string> custom_status;
    std::int64_t status_changes = 0;

    StateAfter(const ExportedHistory& history, const WorkflowStarted& started)
        : custom_status(text_of(started.status)) {
        for (const auto& [key, value] : history.kv) {
            keys[key] = value.json;
        }
        for (const Event& event : history.events) {
            std::visit([this](const auto& body) { apply(body); }, event.body);
        }
    }

private:
    static std::optional<std::string> text_of(const std::optional<Payload>& payload) {
        return payload ? std::optional(payload->json) : std::nullopt;
    }
    void apply(const KvSet& e) { keys[e.key] = e.value.json; }
    void apply(const KvErased& e) { keys[e.key].reset(); }
    void apply(const KvCleared&) {
        for (auto& [key, value] : keys) {
            value.reset();
        }
    }
    void apply(const AttributeSet& e) { attributes[e.name] = text_of(e.value); }
    void apply(const StatusUpdated& e) {
        custom_status = text_of(e.status);
        ++status_changes;
    }
    void apply(const auto&) {}
};

}  // namespace

InstancePage SqlProvider::list(const ListInstances& ask) {
    if (ask.attributes.size() > attributes_max) {
        throw InvalidArgument(
            fmt::format("a listing asks for {} attributes; at most {} are "
                        "compared",
                        ask.attributes.size(),
                        attributes_max));
    }
    std::array<std::pair<std::string, std::string>, attributes_max> wanted;
    std::transform(
        ask.attributes.begin(), ask.attributes.end(), wanted.begin(), [](const auto& attribute) {
            return std::pair(attribute.first, attribute.second.json);
        });
    const PageEnd page = parse_page(ask.page);
    const int limit = std::clamp(ask.limit, 1, page_max);
    const sql::Rows rows = db_.transact("ListInstances", reading(), [&](sql::Tx& tx) {
        const auto query = [&](const sql::Statement& statement, const auto&... more) {
            return tx.query(statement,
                            status_condition(ask),
                            ask.name,
                            ask.id_prefix,
                            ask.created_after ? micros(*ask.created_after) : 0,
                            ask.created_before ? micros(*ask.created_before) : forever_us,
                            page.created_us,
                            page.instance,
                            limit + 1,
                            ask.version,
                            more...);
        };
        if (ask.attributes.empty()) {
            return query(statements::list_instances);
        }
        return query(statements::list_by_attribute,
                     wanted[0].first,
                     wanted[0].second,
                     wanted[1].first,
                     wanted[1].second,
                     wanted[2].first,
                     wanted[2].second,
                     wanted[3].first,
                     wanted[3].second);
    });
    InstancePage result;
    for (const sql::Row row : rows) {
        if (result.instances.size() == static_cast<std::size_t>(limit)) {
            const sql::Row last = rows[static_cast<std::size_t>(limit) - 1];
            result.next =
                fmt::format("{}:{}", last.get<std::int64_t>(14), last.get<std::string>(0));
            break;
        }
        result.instances.push_back(instance_info(row));
    }
    return result;
}

std::vector<ExecutionInfo> SqlProvider::executions(std::string_view instance) {
    return db_.transact("ListExecutions", reading(), [&](sql::Tx& tx) {
        sql::Answer earlier = tx.ask(statements::list_executions, instance);
        sql::Answer current = tx.ask(statements::current_execution, instance);
        std::vector<ExecutionInfo> executions;
        for (sql::Answer* answer : {&earlier, &current}) {
            for (const sql::Row row : answer->rows()) {
                executions.push_back(execution_info(row));
            }
        }
        return executions;
    });
}

std::vector<std::string> SqlProvider::children(std::string_view instance) {
    return db_.transact(
        "ListChildren", reading(), [&](sql::Tx& tx) { return children_of(tx, instance); });
}

std::vector<std::string> SqlProvider::tree(std::string_view instance) {
    return db_.transact("InstanceTree", reading(), [&](sql::Tx& tx) {
        const bool exists = tx.query(statements::instance_exists, instance)[0].get<bool>(0);
        return exists ? tree_of(tx, instance) : std::vector<std::string>{};
    });
}

SystemStats SqlProvider::stats() {
    return db_.transact("SystemStats", reading(), [&](sql::Tx& tx) {
        sql::Answer by_status = tx.ask(statements::count_instances);
        sql::Answer rest_answer = tx.ask(statements::count_rest);
        sql::Answer blocked = tx.ask(statements::count_blocked);
        SystemStats stats;
        for (const sql::Row row : by_status.rows()) {
            const auto count = row.get<std::int64_t>(1);
            stats.instances += count;
            stats.events += row.get<std::int64_t>(2);
            switch (stored_status(row.get<std::string>(0))) {
                case Status::pending:
                    stats.pending = count;
                    break;
                case Status::running:
                    stats.running = count;
                    break;
                case Status::completed:
                    stats.completed = count;
                    break;
                case Status::failed:
                    stats.failed = count;
                    break;
                case Status::cancelled:
                    stats.cancelled = count;
                    break;
                case Status::continued:
                case Status::reset:
                    break;  // Of executions only.
            }
        }
        const sql::Rows rest = rest_answer.rows();
        stats.unserved_activities = rest[0].get<std::int64_t>(7);
        for (const sql::Row row : blocked.rows()) {
            const BlockKind kind = stored_block_kind(row.get<std::string>(0));
            (kind == BlockKind::unregistered ? stats.unserved : stats.blocked) +=
                row.get<std::int64_t>(1);
        }
        stats.executions = stats.instances + rest[0].get<std::int64_t>(0);
        stats.events += rest[0].get<std::int64_t>(6);
        stats.messages = rest[0].get<std::int64_t>(1);
        stats.activities = rest[0].get<std::int64_t>(2);
        stats.early_mailboxes = rest[0].get<std::int64_t>(3);
        if (const auto ready_us = rest[0].get<std::optional<std::int64_t>>(4)) {
            // Mail that was sent while the clock was ahead has waited for no time.
            stats.oldest_mail =
                std::max(moment(rest[0].get<std::int64_t>(5)) - moment(*ready_us), milliseconds{0});
        }
        return stats;
    });
}

DeleteCounts SqlProvider::delete_tree(std::string_view root, bool force) {
    const auto transact = [&](const std::function<void(sql::Tx&)>& body) {
        db_.transact("DeleteTree", writing(), body);
    };
    const auto choose = [&](sql::Tx& tx) {
        std::vector<LockedInstance> tree = lock_tree(tx, root);
        require_no_parent(tx, tree.front(), {});
        for (const LockedInstance& instance : tree) {
            require_ended(instance, force);
        }
        return tree;
    };
    return delete_chosen(transact, choose, options_.rows_per_delete);
}

DeleteCounts SqlProvider::delete_exactly(std::span<const std::string> instances, bool force) {
    const std::set<std::string> listed(instances.begin(), instances.end());
    const auto transact = [&](const std::function<void(sql::Tx&)>& body) {
        db_.transact("DeleteExactly", writing(), body);
    };
    const auto choose = [&](sql::Tx& tx) {
        std::vector<LockedInstance> locked;
        for (const std::string& instance : listed) {
            auto found = lock_instance(tx, instance);
            if (!found) {
                no_such_instance(instance);
            }
            require_ended(*found, force);
            locked.push_back(std::move(*found));
        }
        for (const LockedInstance& instance : locked) {
            require_no_parent(tx, instance, listed);
            for (const std::string& child : children_of(tx, instance.instance)) {
                if (!listed.contains(child)) {
                    refuse(fmt::format("'{}' is a child of '{}' and is not listed; list both",
                                       child,
                                       instance.instance));
                }
            }
        }
        return locked;
    };
    return delete_chosen(transact, choose, options_.rows_per_delete);
}

DeleteCounts SqlProvider::delete_ended(const DeleteFilter& filter) {
    const std::int64_t before_us =
        filter.completed_before ? micros(*filter.completed_before) : forever_us;
    const auto limit = static_cast<std::size_t>(std::max(filter.limit, 0));
    std::vector<std::string> roots;
    db_.transact("FindEnded", reading(), [&](sql::Tx& tx) {
        roots.clear();
        if (filter.ids.empty()) {
            for (const sql::Row row : tx.query(statements::find_ended, before_us, int64(limit))) {
                roots.push_back(row.get<std::string>(0));
            }
            return;
        }
        for (const std::string& id : std::set<std::string>(filter.ids.begin(), filter.ids.end())) {
            if (roots.size() < limit &&
                tx.query(statements::is_ended, before_us, id)[0].get<bool>(0)) {
                roots.push_back(id);
            }
        }
    });
    DeleteCounts counts;
    for (const std::string& root : roots) {
        try {
            counts += delete_tree(root, false);
        } catch (const Error& error) {
            // Deleted meanwhile, or with a child that still runs: left to a later call.
            if (error.code() != Code::not_found && error.code() != Code::condition_failed) {
                throw;
            }
        }
    }
    return counts;
}

DeleteCounts SqlProvider::prune(std::string_view instance, const PruneOptions& options) {
    const auto transact = [&](const std::function<void(sql::Tx&)>& body) {
        db_.transact("PruneExecutions", writing(), body);
    };
    return prune_instance(transact,
                          instance,
                          std::max(options.keep_last, 1),
                          options.completed_before ? micros(*options.completed_before) : 0,
                          options_.rows_per_delete);
}

DeleteCounts SqlProvider::prune_ended(Moment before, int limit) {
    std::vector<std::string> instances;
    for (const sql::Row row : db_.run("FindPrunable",
                                      reading(),
                                      statements::find_prunable_instances,
                                      micros(before),
                                      std::max(limit, 0))
                                  .rows) {
        instances.push_back(row.get<std::string>(0));
    }
    DeleteCounts counts;
    for (const std::string& instance : instances) {
        try {
            counts += prune(instance, {.keep_last = 1, .completed_before = before});
        } catch (const Error& error) {
            if (error.code() != Code::not_found) {  // Deleted meanwhile.
                throw;
            }
        }
    }
    return counts;
}

int SqlProvider::sweep(milliseconds early_mail_ttl, milliseconds reply_ttl) {
    const int mail = db_.transact("SweepEarlyMail", writing(), [&](sql::Tx& tx) {
        // The change of the mailbox conflicts with a concurrent start that would adopt it.
        std::vector<sql::Answer> dropped;
        for (const sql::Row row :
             tx.query(statements::find_early, micros(early_mail_ttl), sweep_max)) {
            dropped.push_back(tx.ask(statements::delete_messages, row.get<std::string>(0)));
            tx.exec(statements::close_mailbox, row.get<std::string>(0));
        }
        int count = 0;
        for (sql::Answer& answer : dropped) {
            count += static_cast<int>(answer.rows().size());
        }
        return count;
    });
    const auto replies =
        db_.run("SweepReplies", writing(), statements::sweep_replies, micros(reply_ttl)).changed;
    return mail + static_cast<int>(replies);
}

void SqlProvider::import_history(std::string_view instance, const ExportedHistory& history) {
    require_instance_id(instance);
    const std::vector<Event>& events = history.events;
    const auto* started =
        events.empty() ? nullptr : std::get_if<WorkflowStarted>(&events.front().body);
    if (started == nullptr) {
        throw InvalidArgument("a history to import does not begin with the start of a workflow");
    }
    const HistoryText text = history_text(events);
    const ImportedEnd ending = imported_end_of(events.back());
    const StateAfter state(history, *started);
    const auto& parent = started->parent;
    db_.transact("ImportHistory", writing(), [&](sql::Tx& tx) {
        const Uuid token = Uuid::v4();
        const sql::Rows created =
            tx.query(statements::import_instance,
                     instance,
                     started->name,
                     started->version,
                     to_string(ending.status),
                     token,
                     int64(events.back().id),
                     text.bytes,
                     engine_number(Version::parse(started->engine)),
                     parent ? std::optional(parent->instance) : std::nullopt,
                     parent ? std::optional(int64(parent->execution)) : std::nullopt,
                     parent ? std::optional(int64(parent->event)) : std::nullopt,
                     ending.output,
                     is_final(ending.status),
                     int64(history.execution),
                     started->cron,
                     state.custom_status,
                     state.status_changes);
        if (created.empty()) {
            throw Error(
                Code::already_exists,
                Outcome::not_applied,
                fmt::format("there is a workflow '{}' already; import under another id", instance));
        }
        if (!is_final(ending.status)) {
            tx.exec(statements::open_mailbox, instance);
        }
        for (const HistoryRow& row : text.rows) {
            tx.exec(statements::add_history,
                    instance,
                    int64(history.execution),
                    int64(row.first),
                    int64(row.last),
                    row.count,
                    token,
                    row.lines);
        }
        for (const auto& [key, value] : state.keys) {
            const auto seed = history.kv.find(key);
            tx.exec(statements::import_kv,
                    instance,
                    key,
                    value,
                    seed == history.kv.end() ? std::nullopt : std::optional(seed->second.json));
        }
        for (const auto& [name, value] : state.attributes) {
            if (value) {
                tx.exec(statements::set_attribute, instance, name, *value);
            }
        }
    });
}

}  // namespace holdfast::flow
