// What a reset would do, for people and for programs.
#pragma once

#include <string>

#include "command.hpp"

#include <holdfast/flow/client.hpp>

namespace holdfast::app {

// Prints it; returns exit_done.
int say_plan(const Context& context, const std::string& id, const flow::ResetPlan& plan);

}  // namespace holdfast::app
