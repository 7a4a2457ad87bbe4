// Checks that the tables have what the guarantees depend on.
//
// Tables can be older than their migrations say, made by hand, or restored in part. Then statements
// fail, or, worse, work without what keeps holders apart.
#pragma once

#include <string>
#include <vector>

#include <holdfast/lock/backend.hpp>

namespace holdfast::lock {

class Locks;

// The problems of the tables of these locks, a sentence each: columns that are missing or have
// another type, keys that are not unique, counters that a crash can set back. Empty if there are
// none. Further columns and indexes are allowed.
[[nodiscard]] std::vector<std::string> schema_problems(Locks& locks,
                                                       const CallOptions& options = {});

}  // namespace holdfast::lock
