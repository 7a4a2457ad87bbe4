#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/namespace/blocking_call.hpp"
#include "frontend/namespace/namespace_service.hpp"
#include "history/times.hpp"
#include "namespaces/cluster_identity.hpp"
#include "namespaces/namespaces.hpp"
#include "search_attributes/names.hpp"
#include <fmt/format.h>
#include <temporal/api/errordetails/v1/message.pb.h>
#include <temporal/api/operatorservice/v1/request_response.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/utf8.hpp>
#include <holdfast/base/uuid.hpp>

namespace holdfast::server::frontend {

namespace {

namespace api = temporal::api::workflowservice::v1;
namespace enums = temporal::api::enums::v1;
namespace operators = temporal::api::operatorservice::v1;
using namespaces::Namespace;
using namespaces::NamespacePtr;
using namespaces::Registry;
using Answered = std::optional<rpc::Refusal>;

constexpr std::chrono::hours retention_min{1};
constexpr std::chrono::days delete_delay_max{30};
constexpr int namespaces_per_page = 100;
constexpr int namespaces_per_page_max = 1000;
constexpr int bad_binaries_max = 10;
constexpr std::size_t id_digits_min = 5;
constexpr std::string_view deleted_mark = "-deleted-";

rpc::Refusal bad_namespace(std::string text) {
    return {rpc::StatusCode::invalid_argument, std::move(text)};
}

// ---- Validation ---------------------------------------------------------------------------------

bool has_odd_characters(std::string_view name) {
    if (name.front() == ' ' || name.back() == ' ') {
        return true;
    }
    while (!name.empty()) {
        const Utf8Character next = first_character(name);
        if (!next.code_point || is_control(*next.code_point)) {
            return true;
        }
        name.remove_prefix(next.bytes);
    }
    return false;
}

Answered check_new_name(const std::string& name) {
    if (name.empty()) {
        return bad_namespace("Namespace not set on request.");
    }
    if (Answered wrong = name_refusal(name)) {
        return wrong;
    }
    if (name.size() > store::name_bytes_max) {  // What the key of its table has room for.
        return bad_namespace("Namespace length exceeds limit.");
    }
    if (has_odd_characters(name)) {
        return bad_namespace("A namespace has neither control characters nor blanks at its ends.");
    }
    return std::nullopt;
}

// Nothing if it is one that may be kept.
Answered check_retention(bool given, const google::protobuf::Duration& retention) {
    if (!given || !history::valid_span(retention) || history::span_of(retention) < retention_min) {
        return bad_namespace("A valid retention period is not set on request.");
    }
    return std::nullopt;
}

Answered check_archival(enums::ArchivalState state, const std::string& uri) {
    if (state == enums::ARCHIVAL_STATE_ENABLED || !uri.empty()) {
        return bad_namespace("Archival is not enabled on this cluster.");
    }
    return std::nullopt;
}

template <class Clusters>
Answered check_clusters(const std::string& active, const Clusters& clusters) {
    if (!active.empty() && active != namespaces::cluster_name) {
        return bad_namespace(fmt::format("Cluster {} is not known.", active));
    }
    for (const auto& cluster : clusters) {
        if (cluster.cluster_name() != namespaces::cluster_name) {
            return bad_namespace(fmt::format("Cluster {} is not known.", cluster.cluster_name()));
        }
    }
    return std::nullopt;
}

void set_retention(Namespace& made, const google::protobuf::Duration& retention) {
    *made.info.mutable_retention() = history::to_duration(history::span_of(retention));
}

// The one that a request names by its name or its id, which may be deleted.
std::variant<NamespacePtr, rpc::Refusal> named(Registry& registry,
                                               const std::string& name,
                                               const std::string& id) {
    if (name.empty() && id.empty()) {
        return bad_namespace("Namespace not set on request.");
    }
    if (!name.empty() && !id.empty()) {
        return bad_namespace("Only one of namespace name or Id should be set on request.");
    }
    if (!name.empty()) {
        if (Answered wrong = name_refusal(name)) {
            return *std::move(wrong);
        }
    }
    const std::optional<Uuid> uuid = Uuid::parse(id);
    if (!id.empty() && !uuid) {
        return bad_namespace("Invalid namespace Id.");
    }
    NamespacePtr found = uuid ? registry.read_id(uuid->text()) : registry.read(name);
    if (!found) {
        return namespace_not_found(name.empty() ? id : name);
    }
    return found;
}

// ---- Replies ------------------------------------------------------------------------------------

// Describe and Update answer with the same fields.
template <class Response>
void show(const Namespace& held, const NamespaceServiceOptions& options, Response& response) {
    auto& info = *response.mutable_namespace_info();
    info.set_name(held.name);
    info.set_id(held.id);
    info.set_state(held.info.state());
    info.set_description(held.info.description());
    info.set_owner_email(held.info.owner_email());
    *info.mutable_data() = held.info.data();
    claim(namespace_capabilities(options.switches), *info.mutable_capabilities());
    auto& limits = *info.mutable_limits();
    limits.set_blob_size_limit_error(static_cast<std::int64_t>(options.blob_bytes_max));
    limits.set_memo_size_limit_error(static_cast<std::int64_t>(options.memo_bytes_max));
    limits.set_workflow_task_completion_size_limit_error(
        static_cast<std::int64_t>(options.completion_bytes_max));

    auto& config = *response.mutable_config();
    *config.mutable_workflow_execution_retention_ttl() = held.info.retention();
    auto& bad = *config.mutable_bad_binaries()->mutable_binaries();
    for (const auto& [checksum, why] : held.info.bad_binaries()) {
        bad[checksum].set_reason(why.reason());
        bad[checksum].set_operator_(why.operator_());
        *bad[checksum].mutable_create_time() = why.create_time();
    }
    config.set_history_archival_state(enums::ARCHIVAL_STATE_DISABLED);
    config.set_visibility_archival_state(enums::ARCHIVAL_STATE_DISABLED);
    *config.mutable_custom_search_attribute_aliases() = held.info.aliases();

    response.mutable_replication_config()->set_active_cluster_name(namespaces::cluster_name);
    response.mutable_replication_config()->add_clusters()->set_cluster_name(
        namespaces::cluster_name);
}

// ---- Calls --------------------------------------------------------------------------------------

Answered register_namespace(Registry& registry, const api::RegisterNamespaceRequest& request) {
    for (Answered wrong :
         {check_new_name(request.namespace_()),
          check_retention(request.has_workflow_execution_retention_period(),
                          request.workflow_execution_retention_period()),
          check_clusters(request.active_cluster_name(), request.clusters()),
          check_archival(request.history_archival_state(), request.history_archival_uri()),
          check_archival(request.visibility_archival_state(), request.visibility_archival_uri())}) {
        if (wrong) {
            return wrong;
        }
    }
    if (request.is_global_namespace()) {
        return bad_namespace("Cannot register global namespace when not enabled.");
    }
    Namespace made;
    made.info.set_state(enums::NAMESPACE_STATE_REGISTERED);
    made.info.set_description(request.description());
    made.info.set_owner_email(request.owner_email());
    *made.info.mutable_data() = request.data();
    set_retention(made, request.workflow_execution_retention_period());
    try {
        (void)registry.create(request.namespace_(), std::move(made.info));
    } catch (const store::NamespaceAlreadyExists&) {
        return rpc::Refusal(rpc::StatusCode::already_exists,
                            fmt::format("Namespace \"{}\" already exists", request.namespace_()),
                            temporal::api::errordetails::v1::NamespaceAlreadyExistsFailure());
    }
    return std::nullopt;
}

Answered list_namespaces(Registry& registry,
                         const NamespaceServiceOptions& options,
                         const api::ListNamespacesRequest& request,
                         api::ListNamespacesResponse& response) {
    registry.refresh();
    if (!request.next_page_token().empty() && !Uuid::parse(request.next_page_token())) {
        return bad_namespace("Invalid NextPageToken.");
    }
    const int asked = request.page_size() > 0 ? request.page_size() : namespaces_per_page;
    const int most = std::min(asked, namespaces_per_page_max);
    std::string after = request.next_page_token();  // The id of the last one that was shown.
    while (response.namespaces_size() < most) {
        const std::vector<NamespacePtr> next = registry.list(1, after);
        if (next.empty()) {
            return std::nullopt;
        }
        const Namespace& held = *next.front();
        after = held.id;
        if (held.info.state() != enums::NAMESPACE_STATE_DELETED ||
            request.namespace_filter().include_deleted()) {
            show(held, options, *response.add_namespaces());
        }
    }
    response.set_next_page_token(after);
    return std::nullopt;
}

bool may_become(enums::NamespaceState from, enums::NamespaceState to) {
    const bool deleted = to == enums::NAMESPACE_STATE_DELETED;
    return (from == enums::NAMESPACE_STATE_REGISTERED &&
            (deleted || to == enums::NAMESPACE_STATE_DEPRECATED)) ||
           (from == enums::NAMESPACE_STATE_DEPRECATED && deleted);
}

Answered update_info(Namespace& made, const api::UpdateNamespaceRequest& request) {
    const auto& info = request.update_info();
    if (!info.description().empty()) {
        made.info.set_description(info.description());
    }
    if (!info.owner_email().empty()) {
        made.info.set_owner_email(info.owner_email());
    }
    for (const auto& [key, value] : info.data()) {
        (*made.info.mutable_data())[key] = value;
    }
    if (info.state() != enums::NAMESPACE_STATE_UNSPECIFIED) {
        if (!may_become(made.info.state(), info.state())) {
            return bad_namespace("Invalid namespace state update.");
        }
        made.info.set_state(info.state());
    }
    return std::nullopt;
}

Answered update_bad_binaries(Namespace& made,
                             const api::UpdateNamespaceRequest& request,
                             const Clock& clock) {
    auto& kept = *made.info.mutable_bad_binaries();
    for (const auto& [checksum, why] : request.config().bad_binaries().binaries()) {
        kept[checksum].set_reason(why.reason());
        kept[checksum].set_operator_(why.operator_());
        *kept[checksum].mutable_create_time() = history::to_timestamp(clock.wall_now());
    }
    const std::string& gone = request.delete_bad_binary();
    if (!gone.empty() && kept.erase(gone) == 0) {
        return bad_namespace(fmt::format("Bad binary checksum {} doesn't exists.", gone));
    }
    if (kept.size() > bad_binaries_max) {
        return bad_namespace(
            fmt::format("Total resetBinaries cannot exceed the max limit: {}", bad_binaries_max));
    }
    return std::nullopt;
}

Answered update_config(Namespace& made, const api::UpdateNamespaceRequest& request) {
    const auto& config = request.config();
    for (Answered wrong :
         {check_archival(config.history_archival_state(), config.history_archival_uri()),
          check_archival(config.visibility_archival_state(), config.visibility_archival_uri())}) {
        if (wrong) {
            return wrong;
        }
    }
    if (config.has_workflow_execution_retention_ttl()) {
        if (Answered wrong = check_retention(true, config.workflow_execution_retention_ttl())) {
            return wrong;
        }
        set_retention(made, config.workflow_execution_retention_ttl());
    }
    if (std::optional<std::string> wrong =
            search_attributes::merge(made.info, config.custom_search_attribute_aliases())) {
        return bad_namespace(*std::move(wrong));
    }
    return std::nullopt;
}

Answered update(Namespace& made, const api::UpdateNamespaceRequest& request, const Clock& clock) {
    const ResolvedNamespace held{.id = made.id, .name = made.name, .state = made.info.state()};
    if (Answered wrong = state_refusal(held, NamespaceUse::ordinary)) {
        return wrong;
    }
    if (Answered wrong = update_info(made, request)) {
        return wrong;
    }
    if (Answered wrong = update_config(made, request)) {
        return wrong;
    }
    if (Answered wrong = update_bad_binaries(made, request, clock)) {
        return wrong;
    }
    made.info.set_config_version(made.info.config_version() + 1);
    return std::nullopt;
}

Answered update_namespace(const NamespaceServiceParts& parts,
                          const NamespaceServiceOptions& options,
                          const api::UpdateNamespaceRequest& request,
                          api::UpdateNamespaceResponse& response) {
    const auto found = named(parts.namespaces, request.namespace_(), {});
    if (const auto* const refusal = std::get_if<rpc::Refusal>(&found)) {
        return *refusal;
    }
    const auto& replication = request.replication_config();
    if (Answered wrong =
            check_clusters(replication.active_cluster_name(), replication.clusters())) {
        return wrong;
    }
    if (request.promote_namespace()) {
        return bad_namespace("Cannot promote a namespace: there is one cluster.");
    }
    Answered refused;
    const NamespacePtr changed =
        parts.namespaces.change(std::get<NamespacePtr>(found)->id, [&](Namespace& made) {
            refused = update(made, request, parts.clock);
            return !refused;
        });
    if (!changed) {
        return namespace_not_found(request.namespace_());
    }
    if (!refused) {
        show(*changed, options, response);
    }
    return refused;
}

Answered deprecate_namespace(const NamespaceServiceParts& parts,
                             const api::DeprecateNamespaceRequest& request) {
    api::UpdateNamespaceRequest update;
    update.set_namespace_(request.namespace_());
    update.mutable_update_info()->set_state(enums::NAMESPACE_STATE_DEPRECATED);
    api::UpdateNamespaceResponse unused;
    return update_namespace(parts, {}, update, unused);
}

// What a deleted namespace is called, so that its name is free at once.
std::string deleted_name(const Registry& registry, const Namespace& made) {
    for (std::size_t digits = id_digits_min;; ++digits) {
        const std::string tail = fmt::format("{}{}", deleted_mark, made.id.substr(0, digits));
        std::string head = made.name.substr(0, store::name_bytes_max - tail.size());
        head.resize(valid_utf8_bytes(head));
        const NamespacePtr taken = registry.find(head + tail);
        if (!taken || taken->id == made.id || digits == made.id.size()) {
            return head + tail;
        }
    }
}

bool has_deleted_name(const Namespace& made) {
    const std::size_t mark = made.name.rfind(deleted_mark);
    return mark != std::string::npos &&
           made.id.starts_with(made.name.substr(mark + deleted_mark.size()));
}

Answered delete_namespace(const NamespaceServiceParts& parts,
                          const operators::DeleteNamespaceRequest& request,
                          operators::DeleteNamespaceResponse& response) {
    Registry& registry = parts.namespaces;
    const auto found = named(registry, request.namespace_(), request.namespace_id());
    if (const auto* const refusal = std::get_if<rpc::Refusal>(&found)) {
        return *refusal;
    }
    const std::string id = std::get<NamespacePtr>(found)->id;
    if (id == namespaces::system_id) {
        return rpc::Refusal(rpc::StatusCode::failed_precondition,
                            "unable to delete system namespace");
    }
    const google::protobuf::Duration& delay = request.namespace_delete_delay();
    if (!history::valid_span(delay) || history::span_of(delay) >= delete_delay_max) {
        return bad_namespace("namespace_delete_delay must be less than 30 days.");
    }
    const NamespacePtr changed = registry.change(id, [&](Namespace& made) {
        const bool renamed =
            made.info.state() == enums::NAMESPACE_STATE_DELETED && has_deleted_name(made);
        if (renamed && made.info.has_delete_after()) {
            return false;  // It was said before.
        }
        made.info.set_state(enums::NAMESPACE_STATE_DELETED);
        *made.info.mutable_delete_after() =
            history::to_timestamp(parts.clock.wall_now() + history::span_of(delay));
        made.info.set_config_version(made.info.config_version() + 1);
        if (!renamed) {
            made.name = deleted_name(registry, made);
        }
        return true;
    });
    if (!changed) {
        return namespace_not_found(request.namespace_());
    }
    if (parts.begin_deletion) {
        parts.begin_deletion(id);
    }
    response.set_deleted_namespace(changed->name);
    return std::nullopt;
}

}  // namespace

void add_namespace_calls(rpc::Dispatch& dispatch,
                         const NamespaceServiceParts& parts,
                         const NamespaceServiceOptions& options) {
    Registry& registry = parts.namespaces;
    Executor& executor = parts.executor;
    const std::string service = "/temporal.api.workflowservice.v1.WorkflowService/";
    add_blocking<api::RegisterNamespaceRequest, api::RegisterNamespaceResponse>(
        dispatch, executor, service + "RegisterNamespace", [&registry](const auto& request, auto&) {
            return register_namespace(registry, request);
        });
    add_blocking<api::DescribeNamespaceRequest, api::DescribeNamespaceResponse>(
        dispatch,
        executor,
        service + "DescribeNamespace",
        [&registry, options](const auto& request, auto& response) -> Answered {
            const auto found = named(registry, request.namespace_(), request.id());
            if (const auto* const refusal = std::get_if<rpc::Refusal>(&found)) {
                return *refusal;
            }
            show(*std::get<NamespacePtr>(found), options, response);
            return std::nullopt;
        });
    add_blocking<api::ListNamespacesRequest, api::ListNamespacesResponse>(
        dispatch,
        executor,
        service + "ListNamespaces",
        [&registry, options](const auto& request, auto& response) {
            return list_namespaces(registry, options, request, response);
        });
    add_blocking<api::UpdateNamespaceRequest, api::UpdateNamespaceResponse>(
        dispatch,
        executor,
        service + "UpdateNamespace",
        [parts, options](const auto& request, auto& response) {
            return update_namespace(parts, options, request, response);
        });
    add_blocking<api::DeprecateNamespaceRequest, api::DeprecateNamespaceResponse>(
        dispatch, executor, service + "DeprecateNamespace", [parts](const auto& request, auto&) {
            return deprecate_namespace(parts, request);
        });
    add_blocking<operators::DeleteNamespaceRequest, operators::DeleteNamespaceResponse>(
        dispatch,
        executor,
        "/temporal.api.operatorservice.v1.OperatorService/DeleteNamespace",
        [parts](const auto& request, auto& response) {
            return delete_namespace(parts, request, response);
        });
}

}  // namespace holdfast::server::frontend
