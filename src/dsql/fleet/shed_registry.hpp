// Those who hold connections, and are told when some of them must go.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace holdfast::dsql {

// Safe to share between threads.
class ShedRegistry {
public:
    // So many connections must go; 0: no more than have gone.
    using Shed = std::function<void(int excess)>;
    enum class Id : std::uint64_t {};

    // Somebody who wants to hold up to `target` connections.
    [[nodiscard]] Id join(int target, Shed shed);
    // Afterwards its `shed` is not called any more.
    void leave(Id holder);

    // What all of them want.
    [[nodiscard]] int wanted() const;

    // Calls everybody with a share of what must go, by what it wants. Nobody is called for nothing,
    // but once after an excess. Requires: one caller at a time.
    void tell(int excess);

private:
    struct Holder {
        int target = 0;
        Shed shed;
    };

    mutable std::mutex mutex_;
    std::map<Id, Holder> holders_;
    std::uint64_t births_ = 0;
    std::mutex telling_;  // Held while they are told; before mutex_.
    bool told_ = false;   // They know of an excess.
};

}  // namespace holdfast::dsql
