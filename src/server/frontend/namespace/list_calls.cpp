#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/namespace/blocking_call.hpp"
#include "frontend/namespace/namespace_service.hpp"
#include "history/times.hpp"
#include "namespaces/namespaces.hpp"
#include "search_attributes/values.hpp"
#include "visibility/query.hpp"
#include <fmt/format.h>
#include <server/visibility/page_token.pb.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/uuid.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::server::frontend {

namespace {

namespace list_api = temporal::api::workflowservice::v1;
namespace list_enums = temporal::api::enums::v1;
using visibility::Purpose;
using visibility::StoreFilter;
using RunInfo = temporal::api::workflow::v1::WorkflowExecutionInfo;
using Listed = std::optional<rpc::Refusal>;

constexpr std::int32_t archived_rows_max = 10'000;
// By which the store sorts what has no end.
constexpr sql::Timestamp never_closed{std::chrono::sys_days{std::chrono::year{9999} / 12 / 31}};
// Before which a database may keep no moment.
constexpr sql::Timestamp first_moment{std::chrono::sys_days{std::chrono::year{1} / 1 / 1}};

// One search: where, what, and who decides on names.
struct Search {
    namespaces::NamespacePtr held;
    store::NamespaceId ns;
    StoreFilter filter;
};

rpc::Refusal bad_list(std::string text) {
    return {rpc::StatusCode::invalid_argument, std::move(text)};
}

std::variant<Search, rpc::Refusal> search_of(const NamespaceServiceParts& parts,
                                             const std::string& name,
                                             std::string_view query,
                                             Purpose purpose) {
    const NamespaceAnswer answer = parts.namespaces.resolve(name, NamespaceUse::ordinary);
    if (const auto* const refusal = std::get_if<rpc::Refusal>(&answer)) {
        return *refusal;
    }
    const namespaces::NamespacePtr held =
        parts.namespaces.find_id(std::get<ResolvedNamespace>(answer).id);
    const std::optional<Uuid> id = held ? Uuid::parse(held->id) : std::nullopt;
    if (!id) {
        return namespace_not_found(name);
    }
    StoreFilter filter = visibility::translate(query, {.info = held->info, .purpose = purpose});
    return Search{.held = held, .ns = {*id}, .filter = std::move(filter)};
}

// What the store says about a filter is about the query it was made of.
template <class Body>
Listed searching(Body&& body) {
    try {
        return body();
    } catch (const InvalidArgument& error) {
        const std::string_view text = error.what();
        return bad_list(text.starts_with("invalid query: ")
                            ? std::string(text)
                            : fmt::format("invalid query: malformed SQL query: {}", text));
    }
}

// ---- Pages --------------------------------------------------------------------------------------

// FNV-1a.
std::uint64_t search_hash(const Search& search) {
    std::uint64_t hash = 14695981039346656037U;
    for (const std::string_view text :
         {std::string_view(search.held->id), std::string_view(search.filter.text)}) {
        for (const char byte : text) {
            hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
        }
    }
    return hash;
}

std::string token_after(const store::VisibilityRecord& last, const Search& search) {
    visibility::token::ListPage token;
    token.set_close_us(last.close_time.value_or(never_closed).time_since_epoch().count());
    token.set_start_us(last.start_time.time_since_epoch().count());
    const auto& run = last.run.value.bytes;
    token.set_run_id(run.data(), run.size());
    token.set_search(search_hash(search));
    return token.SerializeAsString();
}

// Nothing if the token is not one of this search.
std::optional<store::VisibilityPlace> place_of(const std::string& bytes, const Search& search) {
    visibility::token::ListPage token;
    if (!token.ParseFromString(bytes) || token.search() != search_hash(search)) {
        return std::nullopt;
    }
    const std::optional<Uuid> run = Uuid::from_bytes(std::as_bytes(std::span(token.run_id())));
    const auto possible = [](std::int64_t us) {
        return us >= first_moment.time_since_epoch().count() &&
               us <= never_closed.time_since_epoch().count();
    };
    if (!run || !possible(token.close_us()) || !possible(token.start_us())) {
        return std::nullopt;
    }
    const auto moment = [](std::int64_t us) {
        return store::SortKey(sql::Timestamp{std::chrono::microseconds{us}});
    };
    return store::VisibilityPlace{.keys = {moment(token.close_us()), moment(token.start_us())},
                                  .run = {*run}};
}

// ---- Runs ---------------------------------------------------------------------------------------

void show_related(const store::RelatedRun& run,
                  temporal::api::common::v1::WorkflowExecution& shown) {
    shown.set_workflow_id(run.workflow_id);
    shown.set_run_id(run.run.text());
}

// What a run has once it is closed.
void show_end(const store::VisibilityRecord& record, RunInfo& shown) {
    *shown.mutable_close_time() = history::to_timestamp(*record.close_time);
    shown.set_history_length(record.history_length.value_or(0));
    shown.set_history_size_bytes(record.history_size_bytes.value_or(0));
    shown.set_state_transition_count(record.state_transition_count.value_or(0));
    if (record.execution_duration) {
        *shown.mutable_execution_duration() = history::to_duration(*record.execution_duration);
    }
}

void show_run(const search_attributes::Info& info,
              const store::VisibilityRecord& record,
              RunInfo& shown) {
    show_related({.workflow_id = record.workflow_id, .run = record.run},
                 *shown.mutable_execution());
    shown.mutable_type()->set_name(record.workflow_type);
    *shown.mutable_start_time() = history::to_timestamp(record.start_time);
    *shown.mutable_execution_time() = history::to_timestamp(record.execution_time);
    shown.set_status(static_cast<list_enums::WorkflowExecutionStatus>(record.status));
    shown.set_task_queue(record.task_queue);
    if (record.close_time) {
        show_end(record, shown);
    }
    auto& memo = *shown.mutable_memo();  // There even if it is empty.
    if (record.memo && !memo.ParseFromArray(record.memo->data.data(),
                                            static_cast<int>(record.memo->data.size()))) {
        throw store::DamagedData(
            fmt::format("the memo of run {} cannot be decoded", record.run.text()));
    }
    if (!record.search_attributes.empty()) {
        auto& fields = *shown.mutable_search_attributes()->mutable_indexed_fields();
        search_attributes::show(info, record.search_attributes, fields);
        if (fields.empty()) {
            shown.clear_search_attributes();
        }
    }
    if (record.parent) {
        show_related(*record.parent, *shown.mutable_parent_execution());
    }
    if (record.root) {
        show_related(*record.root, *shown.mutable_root_execution());
    }
}

// ---- Calls --------------------------------------------------------------------------------------

struct Page {
    const std::string& ns;
    const std::string& token;
    std::int32_t rows = 0;
    std::int32_t rows_max = 0;
};

template <class Response>
Listed list_page(const NamespaceServiceParts& parts,
                 const Page& page,
                 std::string_view query,
                 Response& response) {
    return searching([&]() -> Listed {
        const auto made = search_of(parts, page.ns, query, Purpose::list);
        if (const auto* const refusal = std::get_if<rpc::Refusal>(&made)) {
            return *refusal;
        }
        const auto& search = std::get<Search>(made);
        std::optional<store::VisibilityPlace> after;
        if (!page.token.empty()) {
            after = place_of(page.token, search);
            if (!after) {
                return bad_list("Invalid NextPageToken.");
            }
        }
        const bool odd = page.rows <= 0 || page.rows > page.rows_max;
        const std::int32_t rows = odd ? page.rows_max : page.rows;
        const store::Visibility runs(parts.db);
        const store::VisibilityPage found = runs.list(search.ns, search.filter.text, rows, after);
        for (const store::VisibilityRecord& record : found.records) {
            show_run(search.held->info, record, *response.add_executions());
        }
        if (std::ssize(found.records) == rows) {  // Also of the last page, if it is full.
            response.set_next_page_token(token_after(found.records.back(), search));
        }
        return std::nullopt;
    });
}

void add_group(std::string_view value,
               std::int64_t count,
               list_api::CountWorkflowExecutionsResponse& response) {
    auto& group = *response.add_groups();
    group.set_count(count);
    auto& payload = *group.add_group_values();
    (*payload.mutable_metadata())["encoding"] = "json/plain";
    (*payload.mutable_metadata())["type"] = "Keyword";
    payload.set_data(search_attributes::json_text(value));
    response.set_count(response.count() + count);
}

Listed count_runs(const NamespaceServiceParts& parts,
                  const list_api::CountWorkflowExecutionsRequest& request,
                  list_api::CountWorkflowExecutionsResponse& response) {
    return searching([&]() -> Listed {
        const auto made = search_of(parts, request.namespace_(), request.query(), Purpose::count);
        if (const auto* const refusal = std::get_if<rpc::Refusal>(&made)) {
            return *refusal;
        }
        const auto& search = std::get<Search>(made);
        const store::Visibility runs(parts.db);
        if (!search.filter.grouped) {
            response.set_count(runs.count(search.ns, search.filter.text));
        } else if (search.filter.by_status) {
            for (const auto& [status, count] :
                 runs.count_by_status(search.ns, search.filter.text)) {
                add_group(visibility::status_name(static_cast<int>(status)), count, response);
            }
        } else {
            for (const auto& [division, count] : runs.count_groups(search.ns, search.filter.text)) {
                add_group(division, count, response);
            }
        }
        return std::nullopt;
    });
}

// ---- Older forms --------------------------------------------------------------------------------

std::string moment_of(const google::protobuf::Timestamp& moment) {
    return visibility::moment_text(
        std::chrono::floor<std::chrono::microseconds>(history::time_of(moment)));
}

// What both older forms have: a range of times, and one filter.
template <class Request>
std::variant<std::string, rpc::Refusal> older_query(const Request& request,
                                                    std::string_view time_name,
                                                    std::string query) {
    if (request.has_start_time_filter()) {
        const auto& range = request.start_time_filter();
        if (range.has_earliest_time() && range.has_latest_time() &&
            history::time_of(range.earliest_time()) > history::time_of(range.latest_time())) {
            return bad_list(
                "EarliestTime in StartTimeFilter should not be larger than "
                "LatestTime.");
        }
        if (range.has_earliest_time()) {
            query += fmt::format(" AND {} >= {}", time_name, moment_of(range.earliest_time()));
        }
        if (range.has_latest_time()) {
            query += fmt::format(" AND {} <= {}", time_name, moment_of(range.latest_time()));
        }
    }
    if (request.has_execution_filter()) {
        const auto& filter = request.execution_filter();
        query += fmt::format(" AND WorkflowId = {}", store::quoted_text(filter.workflow_id()));
        if (!filter.run_id().empty()) {
            query += fmt::format(" AND RunId = {}", store::quoted_text(filter.run_id()));
        }
    }
    if (request.has_type_filter()) {
        query +=
            fmt::format(" AND WorkflowType = {}", store::quoted_text(request.type_filter().name()));
    }
    return query;
}

Listed list_open(const NamespaceServiceParts& parts,
                 std::int32_t rows_max,
                 const list_api::ListOpenWorkflowExecutionsRequest& request,
                 list_api::ListOpenWorkflowExecutionsResponse& response) {
    const auto query = older_query(request, "StartTime", "ExecutionStatus = 'Running'");
    if (const auto* const refusal = std::get_if<rpc::Refusal>(&query)) {
        return *refusal;
    }
    return list_page(parts,
                     {.ns = request.namespace_(),
                      .token = request.next_page_token(),
                      .rows = request.maximum_page_size(),
                      .rows_max = rows_max},
                     std::get<std::string>(query),
                     response);
}

Listed list_closed(const NamespaceServiceParts& parts,
                   std::int32_t rows_max,
                   const list_api::ListClosedWorkflowExecutionsRequest& request,
                   list_api::ListClosedWorkflowExecutionsResponse& response) {
    std::string closed = "ExecutionStatus != 'Running'";
    if (request.has_status_filter()) {
        const auto status = request.status_filter().status();
        if (status <= list_enums::WORKFLOW_EXECUTION_STATUS_RUNNING) {
            return bad_list("Status filter must be specified, and not be Running.");
        }
        closed = fmt::format("ExecutionStatus = {}", static_cast<int>(status));
    }
    const auto query = older_query(request, "CloseTime", std::move(closed));
    if (const auto* const refusal = std::get_if<rpc::Refusal>(&query)) {
        return *refusal;
    }
    return list_page(parts,
                     {.ns = request.namespace_(),
                      .token = request.next_page_token(),
                      .rows = request.maximum_page_size(),
                      .rows_max = rows_max},
                     std::get<std::string>(query),
                     response);
}

template <class Request, class Response>
void add_list(rpc::Dispatch& dispatch,
              const NamespaceServiceParts& parts,
              std::int32_t rows_max,
              std::string method) {
    add_blocking<Request, Response>(dispatch,
                                    parts.executor,
                                    std::move(method),
                                    [parts, rows_max](const Request& request, Response& response) {
                                        return list_page(parts,
                                                         {.ns = request.namespace_(),
                                                          .token = request.next_page_token(),
                                                          .rows = request.page_size(),
                                                          .rows_max = rows_max},
                                                         request.query(),
                                                         response);
                                    });
}

}  // namespace

void add_list_calls(rpc::Dispatch& dispatch,
                    const NamespaceServiceParts& parts,
                    const NamespaceServiceOptions& options) {
    const std::int32_t rows_max = options.list_rows_max;
    const std::string service = "/temporal.api.workflowservice.v1.WorkflowService/";
    add_list<list_api::ListWorkflowExecutionsRequest, list_api::ListWorkflowExecutionsResponse>(
        dispatch, parts, rows_max, service + "ListWorkflowExecutions");
    add_list<list_api::ScanWorkflowExecutionsRequest, list_api::ScanWorkflowExecutionsResponse>(
        dispatch, parts, rows_max, service + "ScanWorkflowExecutions");
    add_blocking<list_api::CountWorkflowExecutionsRequest,
                 list_api::CountWorkflowExecutionsResponse>(
        dispatch,
        parts.executor,
        service + "CountWorkflowExecutions",
        [parts](const auto& request, auto& response) {
            return count_runs(parts, request, response);
        });
    add_blocking<list_api::ListOpenWorkflowExecutionsRequest,
                 list_api::ListOpenWorkflowExecutionsResponse>(
        dispatch,
        parts.executor,
        service + "ListOpenWorkflowExecutions",
        [parts, rows_max](const auto& request, auto& response) {
            return list_open(parts, rows_max, request, response);
        });
    add_blocking<list_api::ListClosedWorkflowExecutionsRequest,
                 list_api::ListClosedWorkflowExecutionsResponse>(
        dispatch,
        parts.executor,
        service + "ListClosedWorkflowExecutions",
        [parts, rows_max](const auto& request, auto& response) {
            return list_closed(parts, rows_max, request, response);
        });
    using ArchivedRequest = list_api::ListArchivedWorkflowExecutionsRequest;
    using ArchivedResponse = list_api::ListArchivedWorkflowExecutionsResponse;
    dispatch.add<ArchivedRequest, ArchivedResponse>(
        service + "ListArchivedWorkflowExecutions",
        [](const ArchivedRequest& request, rpc::Reply<ArchivedResponse> reply) {
            std::move(reply).refuse(
                bad_list(request.page_size() > archived_rows_max
                             ? fmt::format("Pagesize is larger than allowed {}.", archived_rows_max)
                             : "Cluster is not configured for visibility archival."));
        });
}

}  // namespace holdfast::server::frontend
