// The holders of connections, which are called when some connections must be closed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace holdfast::dsql {

// Safe to share between threads.
class ShedRegistry {
public:
    // The number of connections that must be closed; 0: no more.
    using Shed = std::function<void(int excess)>;
    enum class Id : std::uint64_t {};

    // A holder of up to `target` connections.
    [[nodiscard]] Id join(int target, Shed shed);
    // Afterwards its `shed` is not called any more.
    void leave(Id holder);

    // The sum of all targets.
    [[nodiscard]] int wanted() const;

    // Calls each holder with its share of the excess, in proportion to its target. Without an
    // excess no holder is called, except once after one. Requires: one caller at a time.
    void tell(int excess);

private:
    struct Holder {
        int target = 0;
        Shed shed;
    };

    mutable std::mutex mutex_;
    std::map<Id, Holder> holders_;
    std::uint64_t births_ = 0;
    std::mutex telling_;  // Held while holders are called; locked before mutex_.
    bool told_ = false;   // The last call told of an excess.
};

}  // namespace holdfast::dsql
