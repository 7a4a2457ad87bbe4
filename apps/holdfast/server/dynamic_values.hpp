// Settings by the names that they have in other servers of the API: --dynamic-config-value.
#pragma once

#include <string>
#include <vector>

#include <holdfast/server/server.hpp>

namespace holdfast::app {

// Puts what `values` ("key=JSON") say into `options`. Keys are compared without case. Returns the
// keys that have no effect here, without those that launchers pass and that nothing depends on.
// Invalid_argument for a value that is not JSON or does not fit its key.
[[nodiscard]] std::vector<std::string> apply_dynamic_values(const std::vector<std::string>& values,
                                                            server::ServerOptions& options);

}  // namespace holdfast::app
