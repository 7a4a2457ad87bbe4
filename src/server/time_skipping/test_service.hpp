// The calls by which a test moves the time of its server: temporal.api.testservice.v1.TestService.
#pragma once

#include "executor/alarms.hpp"
#include "rpc/dispatch.hpp"
#include "time_skipping/skipper.hpp"

namespace holdfast::server::time_skipping {

// Requires: `skipper` and `alarms` outlive the calls of `dispatch`.
void add_test_service(rpc::Dispatch& dispatch, Skipper& skipper, Alarms& alarms);

}  // namespace holdfast::server::time_skipping
