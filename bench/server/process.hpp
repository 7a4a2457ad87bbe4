// What the kernel says of a process.
#pragma once

#include <cstdint>

namespace holdfast::server_bench {

// Processor time so far, and memory that is resident. Unavailable if there is no such process.
[[nodiscard]] double cpu_seconds_of(std::int64_t pid);
[[nodiscard]] double resident_bytes_of(std::int64_t pid);

}  // namespace holdfast::server_bench
