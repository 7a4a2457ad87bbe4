// What the name of a cluster's endpoint says.
//
//   <cluster id>.dsql.<region>.on.aws             the public endpoint
//   <cluster id>.dsql-<suffix>.<region>.on.aws    through PrivateLink
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::dsql {

// The form that tokens, limits and leases use: without blanks around it, in lower case, without a
// port.
[[nodiscard]] std::string normal_endpoint(std::string_view text);

// The region in a normal endpoint; empty if the name has another form: the region then has to be
// configured.
[[nodiscard]] std::optional<std::string> region_of(std::string_view endpoint);

// The first label of a normal endpoint.
[[nodiscard]] std::string cluster_id_of(std::string_view endpoint);

}  // namespace holdfast::dsql
