// Durable workflows: include this, and <holdfast/flow/json.hpp> for values that are JSON.
#pragma once

#include <holdfast/flow/activity.hpp>
#include <holdfast/flow/client.hpp>
#include <holdfast/flow/registry.hpp>
#include <holdfast/flow/runtime.hpp>
#include <holdfast/flow/store.hpp>
#include <holdfast/flow_engine/combine.hpp>
#include <holdfast/flow_engine/context.hpp>
#include <holdfast/flow_engine/map.hpp>
#include <holdfast/flow_engine/saga.hpp>
