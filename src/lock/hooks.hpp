// Settings that only tests may change.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include <holdfast/lock/locks.hpp>

namespace holdfast::lock {

struct Locks::Hooks {
    std::chrono::milliseconds tolerance = time_tolerance;
    // A grant whose lease is over when its answer arrives is released and not returned.
    bool refuse_born_expired = true;
    // How long a key is kept free for the first waiter.
    std::chrono::milliseconds reservation{250};
    // How long the first waiter of a process waits for another thread of it to release the key,
    // before it joins the queue in the database.
    std::chrono::milliseconds neighbourly{20};
    // How long a server keeps row locks for a client that has stopped in the middle of a
    // transaction.
    std::chrono::milliseconds idle_max{10'000};
    // How many bytes a storage key may have. Empty: as many as the database allows, which no key of
    // 512 bytes exceeds.
    std::optional<std::size_t> storage_key_bytes{};
};

}  // namespace holdfast::lock
