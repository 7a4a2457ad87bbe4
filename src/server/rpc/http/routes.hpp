// Which method a path of HTTP means: the google.api.http annotations of the API's services.
//
// A template such as /api/v1/namespaces/{namespace}/workflows/{execution.workflow_id} is compared
// segment by segment, and a segment is decoded after the path was split: so an id may hold a slash,
// written as %2F.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace google::protobuf {
class MethodDescriptor;
}

namespace holdfast::server::rpc {

struct Route {
    // A segment of the path: a text, or the field that it fills, by its path "execution.run_id".
    struct Segment {
        std::string text;
        bool is_field = false;
    };

    std::string verb;  // "GET", "POST" or "DELETE"
    std::vector<Segment> segments;
    bool has_body = false;  // The body is the whole request.
    const google::protobuf::MethodDescriptor* method = nullptr;

    [[nodiscard]] std::string rpc() const;  // "/package.Service/Method"
};

// A path that was found.
struct Found {
    const Route* route = nullptr;
    std::vector<std::pair<std::string, std::string>> fields;  // By path, with their values.
};

class Routes {
public:
    // Of the services of the API, without the methods that `serves` refuses.
    template <class Serves>
    explicit Routes(const Serves& serves) {
        for (const Route& route : annotated()) {
            if (serves(route.rpc())) {
                add(route);
            }
        }
    }

    // The route with the most texts. Nothing if there is none.
    [[nodiscard]] std::optional<Found> find(std::string_view verb, std::string_view path) const;

    // The verbs of a path, in alphabetical order, HEAD among them where there is a GET.
    [[nodiscard]] std::vector<std::string> verbs(std::string_view path) const;

    [[nodiscard]] std::span<const Route> all() const noexcept { return routes_; }

private:
    [[nodiscard]] static std::vector<Route> annotated();
    void add(Route route);

    std::vector<Route> routes_;
};

}  // namespace holdfast::server::rpc
