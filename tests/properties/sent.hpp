// What this process has really sent to a server: every text that the driver handed to libpq.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace holdfast::test {

// In the order of their first sending, each once, from here on.
class Sent {
public:
    Sent();
    ~Sent();
    Sent(const Sent&) = delete;
    Sent& operator=(const Sent&) = delete;

    // Those that were not taken before.
    [[nodiscard]] std::vector<std::string> take();
    // What was to be committed together, in its order; each such list once. A statement without
    // BEGIN is one alone. Of connections that were opened since the first object of this class.
    [[nodiscard]] std::set<std::vector<std::string>> transactions() const;
};

}  // namespace holdfast::test
