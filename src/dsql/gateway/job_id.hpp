// The ids of asynchronous jobs: 26 characters of lower-case base32, which are 16 bytes.
#pragma once

#include <string>

namespace holdfast::dsql {

[[nodiscard]] std::string new_job_id();
// The body of the RowDescription of the one row that an asynchronous statement answers.
[[nodiscard]] std::string job_description();

}  // namespace holdfast::dsql
