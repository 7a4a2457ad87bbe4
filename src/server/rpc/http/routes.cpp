#include "rpc/http/routes.hpp"

#include <algorithm>
#include <set>

#include <google/api/annotations.pb.h>
#include <google/protobuf/descriptor.h>

#include <holdfast/api/services.hpp>
#include <holdfast/base/percent.hpp>

namespace holdfast::server::rpc {

namespace {

std::vector<std::string_view> split(std::string_view path) {
    std::vector<std::string_view> segments;
    path.remove_prefix(path.starts_with('/') ? 1 : 0);
    while (true) {
        const std::size_t slash = path.find('/');
        segments.push_back(path.substr(0, slash));
        if (slash == path.npos) {
            return segments;
        }
        path.remove_prefix(slash + 1);
    }
}

std::ptrdiff_t texts_in(const Route& route) {
    return std::ranges::count(route.segments, false, &Route::Segment::is_field);
}

void add_rule(const google::api::HttpRule& rule,
              const google::protobuf::MethodDescriptor& method,
              std::vector<Route>& routes) {
    Route route{.verb = {}, .segments = {}, .has_body = rule.body() == "*", .method = &method};
    std::string_view path;
    if (!rule.get().empty()) {
        route.verb = "GET";
        path = rule.get();
    } else if (!rule.post().empty()) {
        route.verb = "POST";
        path = rule.post();
    } else if (!rule.delete_().empty()) {
        route.verb = "DELETE";
        path = rule.delete_();
    } else {
        return;  // The API has no others.
    }
    for (const std::string_view segment : split(path)) {
        const bool is_field = segment.starts_with('{') && segment.ends_with('}');
        const std::string_view bare = is_field ? segment.substr(1, segment.size() - 2) : segment;
        route.segments.push_back({.text = std::string(bare), .is_field = is_field});
    }
    routes.push_back(std::move(route));
}

// The values of the fields; nothing if the path is another one.
std::optional<std::vector<std::pair<std::string, std::string>>> matched(
    const Route& route, std::span<const std::string_view> segments) {
    if (segments.size() != route.segments.size()) {
        return std::nullopt;
    }
    std::vector<std::pair<std::string, std::string>> fields;
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const Route::Segment& wanted = route.segments[i];
        auto value = percent_decoded(segments[i]);
        if (!value || value->empty() || (!wanted.is_field && *value != wanted.text)) {
            return std::nullopt;
        }
        if (wanted.is_field) {
            fields.emplace_back(wanted.text, *std::move(value));
        }
    }
    return fields;
}

}  // namespace

std::string Route::rpc() const {
    return "/" + method->service()->full_name() + "/" + method->name();
}

std::vector<Route> Routes::annotated() {
    std::vector<Route> routes;
    for (const auto* service : api::services()) {
        for (int i = 0; i < service->method_count(); ++i) {
            const auto& method = *service->method(i);
            if (!method.options().HasExtension(google::api::http)) {
                continue;
            }
            const auto& rule = method.options().GetExtension(google::api::http);
            add_rule(rule, method, routes);
            for (const auto& other : rule.additional_bindings()) {
                add_rule(other, method, routes);
            }
        }
    }
    return routes;
}

void Routes::add(Route route) {
    const auto place = std::ranges::find_if(
        routes_, [&](const Route& other) { return texts_in(other) < texts_in(route); });
    routes_.insert(place, std::move(route));
}

std::optional<Found> Routes::find(std::string_view verb, std::string_view path) const {
    const auto segments = split(path);
    for (const Route& route : routes_) {
        if (route.verb != verb) {
            continue;
        }
        if (auto fields = matched(route, segments)) {
            return Found{.route = &route, .fields = *std::move(fields)};
        }
    }
    return std::nullopt;
}

std::vector<std::string> Routes::verbs(std::string_view path) const {
    const auto segments = split(path);
    std::set<std::string> verbs;
    for (const Route& route : routes_) {
        if (matched(route, segments)) {
            verbs.insert(route.verb);
        }
    }
    if (verbs.contains("GET")) {
        verbs.insert("HEAD");
    }
    return {verbs.begin(), verbs.end()};
}

}  // namespace holdfast::server::rpc
