#include "rpc/http/http_api.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "rpc/call_meter.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/rpc/status.pb.h>
#include <temporal/api/errordetails/v1/message.pb.h>

#include <holdfast/base/error.hpp>

namespace holdfast::server::rpc {

namespace {

namespace pb = google::protobuf;

constexpr const char* json_type = "application/json";
constexpr const char* own_client_name = "temporal-server-http";

int status_of(StatusCode code) {
    switch (code) {
        case StatusCode::invalid_argument:
        case StatusCode::failed_precondition:
        case StatusCode::out_of_range:
            return 400;
        case StatusCode::unauthenticated:
            return 401;
        case StatusCode::permission_denied:
            return 403;
        case StatusCode::not_found:
            return 404;
        case StatusCode::already_exists:
        case StatusCode::aborted:
            return 409;
        case StatusCode::resource_exhausted:
            return 429;
        case StatusCode::cancelled:
            return 499;
        case StatusCode::unimplemented:
            return 501;
        case StatusCode::unavailable:
            return 503;
        case StatusCode::deadline_exceeded:
            return 504;
        case StatusCode::unknown:
        case StatusCode::internal:
        case StatusCode::data_loss:
            break;
    }
    return 500;
}

google::rpc::Status wire_status(const Refusal& refusal) {
    google::rpc::Status status;
    status.set_code(static_cast<int>(refusal.code));
    status.set_message(refusal.message);
    if (!refusal.detail_type.empty()) {
        auto* detail = status.add_details();
        detail->set_type_url("type.googleapis.com/" + refusal.detail_type);
        detail->set_value(refusal.detail);
    }
    return status;
}

HttpAnswer json_answer(int status, std::string text, const Wishes& wishes) {
    return {.status = status,
            .body = wishes.pretty ? pretty_json(text) + "\n" : std::move(text),
            .type = json_type};
}

// A header by its own name where that is one of the forwarded ones, or with the prefix.
std::string forwarded(const ReceivedRequest& request, const std::string& name, bool bare) {
    auto values = request.values("grpc-metadata-" + name);
    if (values.empty() && bare) {
        values = request.values(name);
    }
    return values.empty() ? std::string() : std::string(values.front());
}

std::string first_value(const ReceivedRequest& request, std::string_view name) {
    const auto values = request.values(name);
    return values.empty() ? std::string() : std::string(values.front());
}

// A call that waits for something to happen.
bool is_long(const pb::MethodDescriptor& method, const pb::Message& request) {
    static const std::set<std::string_view> always{"QueryWorkflow",
                                                   "UpdateWorkflowExecution",
                                                   "PollWorkflowExecutionUpdate",
                                                   "PollActivityExecution",
                                                   "PollNexusOperationExecution",
                                                   "PollWorkflowExecutionTimeSkipping"};
    if (always.contains(method.name())) {
        return true;
    }
    const auto* type = request.GetDescriptor();
    const auto* reflection = request.GetReflection();
    const auto* waits = type->FindFieldByName("wait_new_event");
    const auto* token = type->FindFieldByName("long_poll_token");
    return (waits != nullptr && reflection->GetBool(request, waits)) ||
           (token != nullptr && !reflection->GetString(request, token).empty());
}

std::unique_ptr<pb::Message> new_message(const pb::Descriptor& type) {
    return std::unique_ptr<pb::Message>(
        pb::MessageFactory::generated_factory()->GetPrototype(&type)->New());
}

}  // namespace

// A call that is not answered. Shared by the call's finish and its alarm.
struct HttpApi::Pending {
    const Route* route = nullptr;
    Wishes wishes;
    HttpRespond respond;
    CallMeter::Measured measured{};
    bool holds_place = false;        // Among the long calls.
    std::atomic<bool> late = false;  // Its deadline has passed.
    std::optional<AlarmId> alarm{};
};

HttpApi::HttpApi(
    Dispatch& dispatch, Alarms& alarms, const Clock& clock, CallMeter* meter, HttpApiLimits limits)
    : dispatch_(dispatch),
      alarms_(alarms),
      clock_(clock),
      meter_(meter),
      limits_(limits),
      routes_([methods = dispatch.methods()](const std::string& rpc) {
          return std::ranges::find(methods, rpc) != methods.end();
      }) {}

void HttpApi::answer(const ReceivedRequest& request, const HttpRespond& respond) {
    if (meter_ != nullptr) {
        meter_->count_http();
    }
    const Wishes wishes = wishes_of(request.query, first_value(request, "accept"));
    const std::string verb = request.method == "HEAD" ? "GET" : request.method;
    const auto found = routes_.find(verb, request.path);
    if (!found) {
        respond(other_verb(request, wishes));
        return;
    }
    try {
        begin(*found, request, wishes, respond);
    } catch (...) {
        respond(refused(dispatch_.shape(refusal_of(std::current_exception())), wishes));
    }
}

HttpAnswer HttpApi::other_verb(const ReceivedRequest& request, const Wishes& wishes) const {
    const std::vector<std::string> verbs = routes_.verbs(request.path);
    if (verbs.empty()) {
        return refused(
            {StatusCode::not_found, fmt::format("there is no path {} in the API", request.path)},
            wishes);
    }
    HttpAnswer answer{.status = 204, .type = ""};
    if (request.method != "OPTIONS") {
        answer = refused({StatusCode::unimplemented,
                          fmt::format("{} is not a method of this path; it has {}",
                                      request.method,
                                      fmt::join(verbs, ", "))},
                         wishes);
        answer.status = 405;
    }
    answer.headers.emplace_back("Allow", fmt::format("{}, OPTIONS", fmt::join(verbs, ", ")));
    return answer;
}

void HttpApi::begin(const Found& found,
                    const ReceivedRequest& request,
                    const Wishes& wishes,
                    const HttpRespond& respond) {
    const auto message = new_message(*found.route->method->input_type());
    if (auto wrong = read_request(found, request.query, request.body, wishes.shorthand, *message)) {
        respond(
            refused(dispatch_.shape({StatusCode::invalid_argument, *std::move(wrong)}), wishes));
        return;
    }
    const auto pending = std::make_shared<Pending>();
    pending->route = found.route;
    pending->wishes = wishes;
    pending->respond = respond;
    if (!take_place(*pending, *message)) {
        temporal::api::errordetails::v1::ResourceExhaustedFailure detail;
        detail.set_cause(temporal::api::enums::v1::RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT);
        detail.set_scope(temporal::api::enums::v1::RESOURCE_EXHAUSTED_SCOPE_SYSTEM);
        respond(refused({StatusCode::resource_exhausted,
                         fmt::format("{} calls wait over HTTP already, which is the limit; call "
                                     "again later, or over gRPC",
                                     limits_.long_calls),
                         detail},
                        wishes));
        return;
    }
    CallInfo info = info_of(found, request);
    const std::string bytes = message->SerializeAsString();
    if (meter_ != nullptr) {
        pending->measured = meter_->begin(info.method, bytes);
    }
    const auto left = *info.deadline - clock_.wall_now();
    const auto call = std::make_shared<Call>(
        std::move(info), [this, pending](Answer answer) { finish(*pending, std::move(answer)); });
    // Set before the call runs: once it is answered its alarm is not touched any more.
    pending->alarm = alarms_.set(clock_.steady_now() + left, [pending, weak = std::weak_ptr(call)] {
        if (const auto late = weak.lock()) {
            pending->late = true;
            late->cancel();
        }
    });
    dispatch_.run(call, bytes);
}

CallInfo HttpApi::info_of(const Found& found, const ReceivedRequest& request) const {
    const auto asked = grpc_timeout(first_value(request, "grpc-timeout"));
    const auto left = asked ? std::min(*asked, limits_.call) : limits_.call;
    CallInfo info{.method = found.route->rpc(),
                  .deadline = clock_.wall_now() + std::chrono::duration_cast<Wall::duration>(left),
                  .caller = {.client_name = forwarded(request, "client-name", true),
                             .client_version = forwarded(request, "client-version", true),
                             .supported_server_versions =
                                 forwarded(request, "supported-server-versions", false),
                             .namespace_hint = forwarded(request, "temporal-namespace", false),
                             .authorization = forwarded(request, "authorization", true),
                             .supported_features = forwarded(request, "supported-features", false),
                             .caller_type = forwarded(request, "caller-type", true)}};
    if (info.caller.client_name.empty()) {
        info.caller.client_name = own_client_name;
    }
    return info;
}

bool HttpApi::take_place(Pending& pending, const pb::Message& request) {
    if (!is_long(*pending.route->method, request)) {
        return true;
    }
    if (++long_calls_ > limits_.long_calls) {
        --long_calls_;
        return false;
    }
    pending.holds_place = true;
    return true;
}

void HttpApi::finish(Pending& pending, Answer answer) {
    if (!pending.late && pending.alarm) {  // In this order: a late call's alarm may be unset yet.
        alarms_.cancel(*pending.alarm);
    }
    if (pending.holds_place) {
        --long_calls_;
    }
    if (const auto* refusal = std::get_if<Refusal>(&answer);
        refusal != nullptr && pending.late && refusal->code == StatusCode::cancelled) {
        answer = Refusal(StatusCode::deadline_exceeded, "the time of this call is over");
    }
    pending.measured.end(answer);
    if (auto* refusal = std::get_if<Refusal>(&answer)) {
        pending.respond(refused(dispatch_.shape(std::move(*refusal)), pending.wishes));
        return;
    }
    const auto response = new_message(*pending.route->method->output_type());
    try {
        if (!response->ParseFromString(std::get<std::string>(answer))) {
            throw Error(Code::internal, Outcome::not_applied, "the response cannot be read");
        }
        pending.respond(
            json_answer(200, to_json(*response, pending.wishes.shorthand), pending.wishes));
    } catch (...) {
        pending.respond(
            refused(dispatch_.shape(refusal_of(std::current_exception())), pending.wishes));
    }
}

HttpAnswer HttpApi::refused(const Refusal& refusal, const Wishes& wishes) const {
    google::rpc::Status status = wire_status(refusal);
    std::string text;
    try {
        text = to_json(status, Shorthand::off);
    } catch (const Error&) {  // A detail that has no JSON.
        status.clear_details();
        text = to_json(status, Shorthand::off);
    }
    HttpAnswer answer = json_answer(status_of(refusal.code), std::move(text), wishes);
    if (const auto why = exhaustion(refusal)) {
        answer.headers.emplace_back("X-Resource-Exhausted-Cause", why->cause);
        answer.headers.emplace_back("X-Resource-Exhausted-Scope", why->scope);
    }
    return answer;
}

std::optional<std::chrono::nanoseconds> grpc_timeout(std::string_view text) {
    using namespace std::chrono_literals;
    constexpr std::array<std::pair<char, std::chrono::nanoseconds>, 6> units{
        {{'H', 1h}, {'M', 1min}, {'S', 1s}, {'m', 1ms}, {'u', 1us}, {'n', 1ns}}};
    constexpr std::size_t digits_max = 8;
    if (text.size() < 2 || text.size() > digits_max + 1) {
        return std::nullopt;
    }
    std::int64_t count = 0;
    const char* const end = text.data() + text.size() - 1;
    const auto [after, error] = std::from_chars(text.data(), end, count);
    const auto* const unit =
        std::ranges::find(units, text.back(), &std::pair<char, std::chrono::nanoseconds>::first);
    if (error != std::errc{} || after != end || count < 0 || unit == units.end()) {
        return std::nullopt;
    }
    const std::chrono::nanoseconds longest = 24h;
    return count > longest / unit->second ? longest : unit->second * count;
}

}  // namespace holdfast::server::rpc
