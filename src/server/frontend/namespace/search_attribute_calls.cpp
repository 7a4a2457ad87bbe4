#include <string>
#include <utility>

#include "frontend/namespace/blocking_call.hpp"
#include "frontend/namespace/namespace_service.hpp"
#include "namespaces/namespaces.hpp"
#include "search_attributes/names.hpp"
#include "search_attributes/values.hpp"
#include <fmt/format.h>
#include <temporal/api/operatorservice/v1/request_response.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

namespace holdfast::server::frontend {

namespace {

namespace operators = temporal::api::operatorservice::v1;
namespace workflow = temporal::api::workflowservice::v1;
using namespaces::Namespace;
using namespaces::NamespacePtr;
using search_attributes::Type;

using TypeMap = google::protobuf::Map<std::string, temporal::api::enums::v1::IndexedValueType>;
using AttributeAnswer = std::optional<rpc::Refusal>;

// Go's server has so many columns of each type, and tools that list them expect those.
constexpr int columns_shown = 3;
constexpr int keyword_columns_shown = 10;
constexpr std::size_t attributes_max = 1000;  // Of one namespace.

rpc::Refusal bad_attribute(std::string text) {
    return {rpc::StatusCode::invalid_argument, std::move(text)};
}

bool has_columns(Type type) {
    return type > temporal::api::enums::v1::INDEXED_VALUE_TYPE_UNSPECIFIED &&
           type <= temporal::api::enums::v1::INDEXED_VALUE_TYPE_KEYWORD_LIST;
}

AttributeAnswer check_new(const TypeMap& wanted) {
    if (wanted.empty()) {
        return bad_attribute("SearchAttributes are not set on request.");
    }
    for (const auto& [name, type] : wanted) {
        if (name.empty() || name.size() > history::Limits{}.id_bytes_max) {
            return bad_attribute("The name of a search attribute has 1 to 1000 bytes.");
        }
        if (search_attributes::is_reserved(name)) {
            return bad_attribute(fmt::format("Search attribute {} is reserved by system.", name));
        }
        if (!has_columns(type)) {
            return bad_attribute(
                fmt::format("Unable to parse search attribute type: {}.", static_cast<int>(type)));
        }
    }
    return std::nullopt;
}

// Changes the namespace of a request in the store, which the next call sees.
template <class Change>
AttributeAnswer change_namespace(namespaces::Registry& registry,
                                 const std::string& name,
                                 const Change& change) {
    const NamespaceAnswer found = registry.resolve(name, NamespaceUse::ordinary);
    if (const auto* const refusal = std::get_if<rpc::Refusal>(&found)) {
        return *refusal;
    }
    const std::string& id = std::get<ResolvedNamespace>(found).id;
    AttributeAnswer refused;
    const NamespacePtr changed = registry.change(id, [&](Namespace& made) {
        refused.reset();
        return change(made, refused);
    });
    return changed ? refused : namespace_not_found(name);
}

AttributeAnswer add_attributes(namespaces::Registry& registry,
                               const operators::AddSearchAttributesRequest& request) {
    if (AttributeAnswer wrong = check_new(request.search_attributes())) {
        return wrong;
    }
    return change_namespace(
        registry, request.namespace_(), [&](Namespace& made, AttributeAnswer& refused) {
            bool added = false;
            for (const auto& [name, type] : request.search_attributes()) {
                added = search_attributes::add(made.info, name, type) || added;
            }
            if (std::size_t(made.info.aliases().size()) > attributes_max) {
                refused =
                    bad_attribute(fmt::format("Unable to create search attributes: cannot have "
                                              "more than {} search attributes.",
                                              attributes_max));
            }
            made.info.set_config_version(made.info.config_version() + 1);
            return added && !refused;
        });
}

AttributeAnswer remove_attributes(namespaces::Registry& registry,
                                  const operators::RemoveSearchAttributesRequest& request) {
    if (request.search_attributes().empty()) {
        return bad_attribute("SearchAttributes are not set on request.");
    }
    for (const std::string& name : request.search_attributes()) {
        if (search_attributes::find_known(name) != nullptr) {
            return bad_attribute(
                fmt::format("Unable to remove non-custom search attributes: {}.", name));
        }
    }
    return change_namespace(registry, request.namespace_(), [&](Namespace& made, AttributeAnswer&) {
        bool removed = false;
        for (const std::string& name : request.search_attributes()) {
            removed = search_attributes::remove(made.info, name) || removed;
        }
        made.info.set_config_version(made.info.config_version() + 1);
        return removed;
    });
}

AttributeAnswer list_attributes(namespaces::Registry& registry,
                                const operators::ListSearchAttributesRequest& request,
                                operators::ListSearchAttributesResponse& response) {
    registry.refresh();
    const NamespaceAnswer found = registry.resolve(request.namespace_(), NamespaceUse::ordinary);
    if (const auto* const refusal = std::get_if<rpc::Refusal>(&found)) {
        return *refusal;
    }
    for (const search_attributes::Known& known : search_attributes::known_attributes()) {
        (*response.mutable_system_attributes())[std::string(known.name)] = known.type;
    }
    const NamespacePtr held = registry.find_id(std::get<ResolvedNamespace>(found).id);
    if (!held) {
        return namespace_not_found(request.namespace_());
    }
    for (const auto& [column, alias] : held->info.aliases()) {
        (*response.mutable_custom_attributes())[alias] =
            search_attributes::column_type(column).value_or(Type{});
    }
    return std::nullopt;
}

void list_all(workflow::GetSearchAttributesResponse& response) {
    for (const search_attributes::Known& known : search_attributes::known_attributes()) {
        (*response.mutable_keys())[std::string(known.name)] = known.type;
    }
    for (int number = 1; number <= temporal::api::enums::v1::INDEXED_VALUE_TYPE_KEYWORD_LIST;
         ++number) {
        const auto type = static_cast<Type>(number);
        const bool keyword = type == temporal::api::enums::v1::INDEXED_VALUE_TYPE_KEYWORD;
        for (int column = 1; column <= (keyword ? keyword_columns_shown : columns_shown);
             ++column) {
            const std::string name =
                fmt::format("{}{:02}", search_attributes::short_name(type), column);
            (*response.mutable_keys())[name] = type;
        }
    }
}

}  // namespace

AttributeCheck attribute_check(const namespaces::Registry& registry) {
    return [&registry](const ResolvedNamespace& in,
                       temporal::api::common::v1::SearchAttributes& given) -> Problem {
        const NamespacePtr held = registry.find_id(in.id);
        if (!held) {
            return namespace_not_found(in.name);
        }
        std::optional<std::string> wrong =
            search_attributes::complete(held->info, in.name, *given.mutable_indexed_fields());
        return wrong ? Problem(bad_attribute(*std::move(wrong))) : std::nullopt;
    };
}

void add_search_attribute_calls(rpc::Dispatch& dispatch, const NamespaceServiceParts& parts) {
    namespaces::Registry& registry = parts.namespaces;
    const std::string service = "/temporal.api.operatorservice.v1.OperatorService/";
    add_blocking<operators::AddSearchAttributesRequest, operators::AddSearchAttributesResponse>(
        dispatch,
        parts.executor,
        service + "AddSearchAttributes",
        [&registry](const auto& request, auto&) { return add_attributes(registry, request); });
    add_blocking<operators::RemoveSearchAttributesRequest,
                 operators::RemoveSearchAttributesResponse>(
        dispatch,
        parts.executor,
        service + "RemoveSearchAttributes",
        [&registry](const auto& request, auto&) { return remove_attributes(registry, request); });
    add_blocking<operators::ListSearchAttributesRequest, operators::ListSearchAttributesResponse>(
        dispatch,
        parts.executor,
        service + "ListSearchAttributes",
        [&registry](const auto& request, auto& response) {
            return list_attributes(registry, request, response);
        });
    dispatch.add<workflow::GetSearchAttributesRequest, workflow::GetSearchAttributesResponse>(
        "/temporal.api.workflowservice.v1.WorkflowService/GetSearchAttributes",
        [](const workflow::GetSearchAttributesRequest&,
           rpc::Reply<workflow::GetSearchAttributesResponse> reply) {
            list_all(reply.message());
            std::move(reply).send();
        });
}

}  // namespace holdfast::server::frontend
