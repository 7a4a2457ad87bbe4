// Records of who held what when, and a check that no two held the same at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace holdfast::test {

// One holding of a key. Leases are checked by the database's clock, as the holder received it; a
// release by the machine's steady clock, which all holders share.
struct Holding {
    std::string key;
    std::uint64_t fence = 0;
    std::int64_t from_ms = 0;
    std::int64_t until_ms = 0;         // The last expiry that was acknowledged.
    std::int64_t answered_ns = 0;      // When the holder had the answer.
    std::int64_t release_sent_ns = 0;  // Before which it was not given back; 0 if it never was.
};

// One sentence for every pair that overlaps, and for every fence that was given twice.
[[nodiscard]] inline std::vector<std::string> overlaps(const std::vector<Holding>& holdings) {
    std::map<std::string, std::vector<Holding>> by_key;
    for (const Holding& holding : holdings) {
        by_key[holding.key].push_back(holding);
    }
    std::vector<std::string> found;
    for (auto& [key, all] : by_key) {
        std::ranges::sort(all, {}, &Holding::fence);
        for (std::size_t i = 1; i < all.size(); ++i) {
            const Holding& before = all[i - 1];
            const Holding& after = all[i];
            if (after.fence == before.fence) {
                found.push_back(key + ": fence " + std::to_string(after.fence) +
                                " was given twice");
            }
            // Over is what comes first: the end of the lease, or the release.
            const bool released =
                before.release_sent_ns != 0 && after.answered_ns >= before.release_sent_ns;
            const bool early = after.from_ms < before.until_ms && !released;
            if (early) {
                found.push_back(key + ": fence " + std::to_string(after.fence) +
                                " was held before fence " + std::to_string(before.fence) +
                                " was over");
            }
        }
    }
    return found;
}

}  // namespace holdfast::test
