#include "history/builds/builds.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "history/apply.hpp"
#include "history/transition.hpp"
#include <temporal/api/history/v1/message.pb.h>

#include <holdfast/base/json_text.hpp>

namespace holdfast::server::history {

namespace {

using temporal::api::common::v1::Payload;
using temporal::api::common::v1::WorkerVersionStamp;
using temporal::api::history::v1::HistoryEvent;
using temporal::api::workflow::v1::ResetPointInfo;

constexpr int reset_points_max = 20;
constexpr std::size_t list_bytes_max = 2048;
constexpr std::string_view unversioned = "unversioned";
constexpr const char* build_ids_name = "BuildIds";
constexpr const char* checksums_name = "BinaryChecksums";

// Clients may have written the attribute: what is not a list of texts counts as empty.
std::vector<std::string> texts_of(const Payload& payload) {
    std::vector<std::string> texts;
    json::Scanner scanner(payload.data());
    const bool whole = scanner.array([&](std::string_view element) -> const char* {
        const std::string_view literal = json::trim(element);
        if (!literal.starts_with('"')) {
            return "not a string";
        }
        json::append_unescaped(texts.emplace_back(), literal);
        return nullptr;
    });
    return whole && scanner.at_end() ? texts : std::vector<std::string>{};
}

std::string list_of(const std::vector<std::string>& texts) {
    std::string list = "[";
    for (const std::string& text : texts) {
        list += list.size() > 1 ? "," : "";
        json::append_string(list, text);
    }
    return list + "]";
}

void set_list(state::Run& run, const char* name, std::string list) {
    Payload& payload = (*run.mutable_search_attributes())[name];
    (*payload.mutable_metadata())["encoding"] = "json/plain";
    (*payload.mutable_metadata())["type"] = "KeywordList";
    payload.set_data(std::move(list));
}

std::string build_text(const WorkerVersionStamp& version) {
    if (version.build_id().empty()) {
        return std::string{unversioned};
    }
    const std::string_view kind = version.use_versioning() ? "versioned:" : "unversioned:";
    return std::string{kind} + version.build_id();
}

// That a worker without versioning has run the workflow stands first, and is kept when the oldest
// builds give way to the limit.
void list_build(state::Run& run, const WorkerVersionStamp& version) {
    std::vector<std::string> builds;
    if (!version.use_versioning()) {
        builds.emplace_back(unversioned);
    }
    const auto before = run.search_attributes().find(build_ids_name);
    if (before != run.search_attributes().end()) {
        for (std::string& build : texts_of(before->second)) {
            if (build != unversioned) {
                builds.push_back(std::move(build));
            }
        }
    }
    const std::string newest = build_text(version);
    if (std::ranges::find(builds, newest) == builds.end()) {
        builds.push_back(newest);
    }
    const std::ptrdiff_t kept = builds.front() == unversioned ? 1 : 0;
    std::string list = list_of(builds);
    while (list.size() > list_bytes_max && std::ssize(builds) > kept) {
        builds.erase(builds.begin() + kept);
        list = list_of(builds);
    }
    set_list(run, build_ids_name, std::move(list));
}

void list_checksums(state::Run& run) {
    std::vector<std::string> checksums;
    for (const ResetPointInfo& point : run.reset_points()) {
        if (!point.binary_checksum().empty()) {
            checksums.push_back(point.binary_checksum());
        }
    }
    set_list(run, checksums_name, list_of(checksums));
}

bool add_reset_point(state::Run& run,
                     const HistoryEvent& event,
                     const std::string& checksum,
                     const std::string& build_id) {
    const bool known = std::ranges::any_of(run.reset_points(), [&](const ResetPointInfo& point) {
        return point.binary_checksum() == checksum && point.build_id() == build_id;
    });
    if (known) {
        return false;
    }
    ResetPointInfo point;
    point.set_binary_checksum(checksum);
    point.set_build_id(build_id);
    point.set_run_id(run.run_id());
    point.set_first_workflow_task_completed_id(event.event_id());
    *point.mutable_create_time() = event.event_time();
    point.set_resettable(run.children().empty() && run.external_cancels().empty() &&
                         run.external_signals().empty());
    if (run.reset_points_size() == reset_points_max) {
        run.mutable_reset_points()->DeleteSubrange(0, 1);
    }
    *run.add_reset_points() = std::move(point);
    return true;
}

}  // namespace

void remember_build(state::Run& run, const HistoryEvent& completed) {
    const auto& attributes = completed.workflow_task_completed_event_attributes();
    const WorkerVersionStamp& version = attributes.worker_version();
    if (attributes.has_worker_version()) {
        *run.mutable_worker_version() = version;
    } else {
        run.clear_worker_version();
    }
    const std::string& checksum = attributes.binary_checksum();
    const bool added = add_reset_point(run, completed, checksum, version.build_id());
    list_build(run, version);
    if (added && !checksum.empty()) {
        list_checksums(run);
    }
}

void expire_reset_points(state::Run& closed, Continuation& next, Time expiry) {
    const Note expire = note::ResetPointsExpire{.at = expiry};
    apply(closed, expire);
    if (closed.reset_points().empty()) {
        next.started.clear_prev_auto_reset_points();
    } else {
        *next.started.mutable_prev_auto_reset_points()->mutable_points() = closed.reset_points();
    }
}

}  // namespace holdfast::server::history
