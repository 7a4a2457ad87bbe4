#include "id_digest.hpp"
#include "matching/statements.hpp"
#include "transaction.hpp"
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/store/task_queue.hpp>

namespace holdfast::store {
namespace {

// One queue's compare-and-set, on its way.
struct Attempt {
    std::optional<sql::Answer> inserted;      // A row if it was.
    std::optional<sql::FenceAnswer> updated;  // Held if it was.

    bool applied() { return inserted ? !inserted->rows().empty() : updated && updated->held(); }
};

Attempt attempt(sql::Tx& tx,
                NamespaceId ns,
                const std::string& queue,
                const UserDataUpdate& update) {
    const Blob& blob = update.data.blob;
    const Uuid digest = key_digest(queue);
    if (update.data.version == 0) {
        return {
            .inserted = tx.ask(
                statements::insert_user_data, ns.value, digest, queue, blob.data, blob.encoding),
            .updated = {}};
    }
    const sql::Guard guard{.what = fmt::format("user data of \"{}\"", queue),
                           .key = {ns.value, digest},
                           .tokens = {update.data.version}};
    return {
        .inserted = {},
        .updated = tx.ask_fenced(guard, statements::update_user_data, blob.data, blob.encoding)};
}

void require_build(const std::string& build) {
    require_name("a build's id", build, name_bytes_max);
}

UserData data_of(const sql::Row& row, std::size_t column) {
    return {.blob = {.data = row.get<sql::Bytes>(column + 1),
                     .encoding = row.get<std::string>(column + 2)},
            .version = row.get<std::int64_t>(column)};
}

}  // namespace

UserDataConflict::UserDataConflict(std::set<std::string> queues, std::source_location where)
    : ConditionFailed(fmt::format("the user data of {} have another version; read them again",
                                  fmt::join(queues, ", ")),
                      where),
      queues_(std::move(queues)) {}

std::optional<UserData> TaskQueueUserData::find(NamespaceId ns,
                                                const std::string& queue,
                                                const Call& call) const {
    require_name("the task queue's name", queue, id_bytes_max);
    const Uuid digest = key_digest(queue);
    const sql::Result found =
        run(db_, operation::get_user_data, call, statements::select_user_data, ns.value, digest);
    const auto row = found.rows.single();
    if (!row) {
        return std::nullopt;
    }
    require_same_id("the task queue", row->get<std::string>(3), queue);
    return data_of(*row, 0);
}

void TaskQueueUserData::update(NamespaceId ns,
                               const std::map<std::string, UserDataUpdate>& queues,
                               const Call& call) {
    for (const auto& [queue, update] : queues) {
        require_name("the task queue's name", queue, id_bytes_max);
        require_blob(db_.dialect(), update.data.blob);
        for (const auto* const builds : {&update.added_builds, &update.removed_builds}) {
            for (const std::string& build : *builds) {
                require_build(build);
            }
        }
    }
    transact(db_, operation::update_user_data, call, [&](sql::Tx& tx) {
        std::vector<std::pair<const std::string*, Attempt>> attempts;
        attempts.reserve(queues.size());
        for (const auto& [queue, update] :
             queues) {  // By name, so that two updates cannot deadlock.
            attempts.emplace_back(&queue, attempt(tx, ns, queue, update));
        }
        std::set<std::string> conflicting;
        for (auto& [queue, attempted] : attempts) {
            if (!attempted.applied()) {
                conflicting.insert(*queue);
            }
        }
        if (!conflicting.empty()) {
            throw UserDataConflict(std::move(conflicting));
        }
        for (const auto& [queue, update] : queues) {
            for (const std::string& build : update.added_builds) {
                tx.exec(statements::add_build, ns.value, build, key_digest(queue), queue);
            }
            for (const std::string& build : update.removed_builds) {
                tx.exec(statements::remove_build, ns.value, build, key_digest(queue));
            }
        }
    });
}

std::vector<std::pair<std::string, UserData>> TaskQueueUserData::list(NamespaceId ns,
                                                                      std::int64_t page_size,
                                                                      const std::string& after,
                                                                      const Call& call) const {
    const sql::Result found = run(db_,
                                  operation::list_user_data,
                                  call,
                                  statements::page_of_user_data,
                                  ns.value,
                                  after.empty() ? Uuid{} : key_digest(after),
                                  require_page_size(page_size));
    std::vector<std::pair<std::string, UserData>> page;
    for (const sql::Row row : found.rows) {
        page.emplace_back(row.get<std::string>(0), data_of(row, 1));
    }
    return page;
}

std::vector<std::string> TaskQueueUserData::queues_of_build(NamespaceId ns,
                                                            const std::string& build,
                                                            const Call& call) const {
    require_build(build);
    const sql::Result found =
        run(db_, operation::get_builds, call, statements::queues_of_build, ns.value, build);
    std::vector<std::string> queues;
    for (const sql::Row row : found.rows) {
        queues.push_back(row.get<std::string>(0));
    }
    return queues;
}

std::int64_t TaskQueueUserData::count_queues_of_build(NamespaceId ns,
                                                      const std::string& build,
                                                      const Call& call) const {
    require_build(build);
    return run(db_, operation::get_builds, call, statements::count_queues_of_build, ns.value, build)
        .rows[0]
        .get<std::int64_t>(0);
}

}  // namespace holdfast::store
