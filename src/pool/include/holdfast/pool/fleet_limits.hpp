// The constants of the limits that a fleet shares: permits, slots and leases.
#pragma once

#include <chrono>

namespace holdfast::pool {

// Only tests and the simulator change it.
struct FleetLimits {
    using Time = std::chrono::nanoseconds;

    // --- Permits to open a connection ---
    Time permit_wait = std::chrono::seconds{25};  // Of the time that one opening has.
    int exchanges_max = 3;  // With the reservation clock, before looking up from it.
    // The per-second counter is asked again after a short nap, or right after the next second began
    // if that is near; chance is added, so that processes do not ask together.
    Time counter_nap = std::chrono::milliseconds{25};
    Time counter_nap_jitter = std::chrono::milliseconds{25};
    Time counter_near_boundary = std::chrono::milliseconds{250};
    Time counter_boundary_jitter = std::chrono::milliseconds{50};
    // A bucket that another process has changed first is tried again after this, and up to half
    // more.
    Time bucket_nap = std::chrono::milliseconds{50};
    // A store that gives no answer, or throttles, is asked again after this, doubling.
    Time trouble_nap = std::chrono::milliseconds{50};
    Time trouble_nap_max = std::chrono::seconds{1};

    // --- When the store is unreachable ---
    int breaker_failures = 3;  // In a row, and the local share takes over.
    Time breaker_probe = std::chrono::seconds{5};

    // --- When the server answers 53400 in spite of permits ---
    double slow_down = 0.5;  // What is left of the rate after each,
    double slowest = 1.0 / 64;
    Time slow_down_once = std::chrono::seconds{1};   // Refusals within this time count as one,
    double speed_up = 0.1;                           // and what of the full rate comes back
    Time speed_up_after = std::chrono::seconds{10};  // after this long without another.

    Time skew_warning = std::chrono::seconds{1};  // Of our clock against the store's.

    // --- Blocks of slots ---
    Time block_safety_min = std::chrono::seconds{10};  // Or a sixth of their time to live.
    Time steal_after = std::chrono::seconds{30};       // Past its end, for clocks that differ.
    Time block_empty_max = std::chrono::minutes{5};    // Then it is given back.
    double block_free_min = 0.2;                       // With less, another one is fetched.
    int block_takes_max = 2;                           // At a time.
    Time block_short_first = std::chrono::seconds{1};  // The pause when no block is free, doubling.
    Time block_short_most = std::chrono::seconds{15};
    int block_walk_parts = 8;                    // The number of pauses in a walk over all blocks.
    Time store_retry = std::chrono::seconds{5};  // After a call that was not answered.

    // --- Leases of single connections ---
    Time heartbeat_every = std::chrono::minutes{1};
    Time owner_lease = std::chrono::minutes{3};  // From each heartbeat.
    // The server ends a connection after an hour, or five minutes later if it is busy.
    Time unowned_lease = std::chrono::minutes{65};
    Time garbage_after = std::chrono::hours{24 * 7};
    Time conflict_nap = std::chrono::milliseconds{10};  // Two transactions met,
    Time conflict_nap_jitter = std::chrono::milliseconds{40};
    Time release_retry_first = std::chrono::milliseconds{250};  // and this doubles.
    Time release_retry_most = std::chrono::seconds{10};
    Time reaper_lease = std::chrono::minutes{2};
    Time reconcile_every = std::chrono::hours{1};

    Time release_wait = std::chrono::seconds{10};  // For all that is given back at the end.
};

}  // namespace holdfast::pool
