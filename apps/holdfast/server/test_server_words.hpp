// The command line of a test server: `holdfast PORT [--enable-time-skipping]`.
#pragma once

#include <string>
#include <vector>

namespace holdfast::app {

// The test environments of the SDKs start a server by its port alone. Such words become those of
// the verb `server start-test`; all others stay as they are.
[[nodiscard]] std::vector<std::string> with_test_server_verb(std::vector<std::string> words);

}  // namespace holdfast::app
