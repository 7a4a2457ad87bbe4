// Whether the tables are what the guarantees rest on.
//
// Tables can be older than their migrations say, made by hand, or restored in part. Then statements
// fail, or, worse, work without what keeps holders apart.
#pragma once

#include <string>
#include <vector>

#include <holdfast/lock/backend.hpp>

namespace holdfast::lock {

class Locks;

// What is wrong with the tables of these locks, a sentence each: columns that are missing or have
// another type, keys that are not unique, counters that a crash can set back. Empty if all is well.
// Further columns and indexes are nobody's business but their owner's.
[[nodiscard]] std::vector<std::string> schema_problems(Locks& locks,
                                                       const CallOptions& options = {});

}  // namespace holdfast::lock
