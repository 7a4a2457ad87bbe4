// The keys of a scenario that only the current pool understands.
#pragma once

#include "scenario/fields.hpp"

namespace holdfast::sim {

// cluster, limiter, slots, faults, assertions.
void read_standard(Fields& top, Scenario& scenario);
// assert... of the older models, and assertions.
void read_assertions(Fields& top, Scenario& scenario);
// inFlight, lead, overshoot, spread, pollEvery, countLent, probeEvery.
void read_standard_service(Fields& fields, Service& service);
// How many pools the service has in its process. Requires: at most `most` are left.
[[nodiscard]] int read_pools(Fields& fields, std::size_t most);
// arrivals, rate, on, off, trace, retries, retryAfter.
void read_standard_work(Fields& fields, Workload& work);

}  // namespace holdfast::sim
