// How the answers of the rooms behind read on the wire.
#pragma once

#include "engine/turn.hpp"
#include "history/refusal.hpp"
#include "rpc/refusal.hpp"

namespace holdfast::server::frontend {

[[nodiscard]] rpc::Refusal wire_refusal(const history::Refusal& refusal);
[[nodiscard]] rpc::Refusal wire_refusal(const engine::AlreadyStarted& existing);

}  // namespace holdfast::server::frontend
