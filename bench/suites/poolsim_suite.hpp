// How fast the pool simulator is.
#pragma once

#include <memory>

#include <holdfast/bench/suite.hpp>

namespace holdfast::bench {

// poolsim.events.*: ecs-400wps with 22,000 connections, against a queue of events that does nothing
// else. poolsim.seeds.tN: seeds of ecs-150wps on N threads, against a plain loop on one.
[[nodiscard]] std::unique_ptr<Suite> make_poolsim_suite(const WaitTicket& place);

}  // namespace holdfast::bench
