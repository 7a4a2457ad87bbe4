// The request that a method gets from a path, a query and a body.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rpc/http/json.hpp"
#include "rpc/http/routes.hpp"

namespace holdfast::server::rpc {

// What the query says about the answer.
struct Wishes {
    Shorthand shorthand = Shorthand::on;
    bool pretty = false;
};
[[nodiscard]] Wishes wishes_of(std::string_view query, std::string_view accept);

// Fills `request`; returns what is wrong, for the caller. Fields of the path win over the body.
// Parameters of the query that the request does not have are ignored, and so are all of them where
// the body is the whole request.
[[nodiscard]] std::optional<std::string> read_request(const Found& found,
                                                      std::string_view query,
                                                      std::string_view body,
                                                      Shorthand shorthand,
                                                      google::protobuf::Message& request);

}  // namespace holdfast::server::rpc
