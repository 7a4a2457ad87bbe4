#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/dsql/gateway_control.hpp>

namespace holdfast::dsql {

namespace {

using Json = nlohmann::ordered_json;

constexpr int count_max = 1'000'000'000;  // Of nth and times, whose sum is an int.

constexpr std::array points{std::pair{"connect", FaultPoint::connect},
                            std::pair{"statement", FaultPoint::statement},
                            std::pair{"commit", FaultPoint::commit}};

constexpr std::array faults{std::pair{"OC000", GatewayFault::data_conflict},
                            std::pair{"OC001", GatewayFault::schema_conflict},
                            std::pair{"XX000", GatewayFault::unavailable},
                            std::pair{"XX000-after", GatewayFault::unavailable_after},
                            std::pair{"EOF", GatewayFault::hang_up},
                            std::pair{"EOF-after", GatewayFault::hang_up_after},
                            std::pair{"53300", GatewayFault::too_many},
                            std::pair{"53400", GatewayFault::rate_exceeded}};

template <class Names>
auto chosen(const Names& names, std::string_view what, const std::string& word) {
    std::string known;
    for (const auto& [name, value] : names) {
        if (word == name) {
            return value;
        }
        known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
    }
    throw InvalidArgument(fmt::format("'{}' is not a {}; choose from {}", word, what, known));
}

// An object with no other names than these.
Json object_in(std::string_view text, std::initializer_list<std::string_view> names) {
    if (text.empty()) {
        throw InvalidArgument("the body is empty; send a JSON object, {} for the defaults");
    }
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) {
        throw InvalidArgument("the body is not a JSON object");
    }
    for (const auto& [name, value] : json.items()) {
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            throw InvalidArgument(fmt::format("'{}' is not known here", name));
        }
    }
    return json;
}

template <class T>
T value_in(const Json& json, const char* name, T fallback) {
    try {
        return json.value(name, std::move(fallback));
    } catch (const Json::exception&) {
        throw InvalidArgument(fmt::format("'{}' has a value of the wrong kind", name));
    }
}

int count_in(const Json& json, const char* name) {
    const auto count = value_in<std::int64_t>(json, name, 1);
    if (count < 1 || count > count_max) {
        throw InvalidArgument(fmt::format("'{}' is 1 to {}", name, count_max));
    }
    return static_cast<int>(count);
}

HttpAnswer answer_json(std::string text) {
    return {.body = std::move(text) + "\n", .type = "application/json"};
}

// An error of the caller is a 400 with the reason, not a failure of the server.
HttpRoute route(std::string method, std::string path, std::function<void(const std::string&)> act) {
    return {std::move(method), std::move(path), [act = std::move(act)](const std::string& body) {
                try {
                    act(body);
                    return answer_json("{}");
                } catch (const InvalidArgument& error) {
                    return HttpAnswer{.status = 400, .body = std::string(error.what()) + "\n"};
                }
            }};
}

std::vector<HttpRoute> routes(Gateway& gateway) {
    return {route("POST",
                  "/faults",
                  [&gateway](const std::string& body) { gateway.arm(fault_rule_from_json(body)); }),
            route("DELETE", "/faults", [&gateway](const std::string&) { gateway.disarm(); }),
            {"GET",
             "/stats",
             [&gateway](const std::string&) { return answer_json(to_json(gateway.stats())); }},
            route("POST",
                  "/hang-up",
                  [&gateway](const std::string& body) {
                      const Json json = object_in(body, {"cluster"});
                      gateway.hang_up(value_in<std::string>(json, "cluster", {}));
                  }),
            route("POST", "/early-abort", [&gateway](const std::string& body) {
                gateway.set_early_abort(value_in(object_in(body, {"on"}), "on", true));
            })};
}

}  // namespace

FaultRule fault_rule_from_json(std::string_view text) {
    const Json json = object_in(text, {"point", "fault", "nth", "times", "cluster"});
    return {.point = chosen(points, "point", value_in<std::string>(json, "point", "commit")),
            .fault = chosen(faults, "fault", value_in<std::string>(json, "fault", "OC000")),
            .nth = count_in(json, "nth"),
            .times = count_in(json, "times"),
            .cluster = value_in<std::string>(json, "cluster", {})};
}

std::string to_json(const GatewayStats& stats) {
    return Json{{"connections", stats.connections},
                {"strangers", stats.strangers},
                {"opened", stats.opened},
                {"commits", stats.commits},
                {"conflicts", stats.conflicts},
                {"detached", stats.detached},
                {"replayed", stats.replayed},
                {"exchanges", stats.exchanges}}
        .dump();
}

GatewayControl::GatewayControl(Gateway& gateway, const HttpAddress& address)
    : server_(address, routes(gateway), "--control", {.same_origin_only = true}) {}

}  // namespace holdfast::dsql
