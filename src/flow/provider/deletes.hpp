// Removing an instance with all that belongs to it, inside a transaction.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/base/uuid.hpp>
#include <holdfast/flow/provider.hpp>
#include <holdfast/sql/tx.hpp>

namespace holdfast::flow {

// An instance whose row this transaction has locked: no turn of it can commit meanwhile, so it gets
// no further children.
struct LockedInstance {
    std::string instance;
    Uuid token;
    Status status = Status::pending;
    std::optional<std::string> parent;
    ExecutionId execution = 1;
};

[[nodiscard]] std::optional<LockedInstance> lock_instance(sql::Tx& tx, std::string_view instance);
[[nodiscard]] std::vector<std::string> children_of(sql::Tx& tx, std::string_view instance);
// The instance, even if it does not exist, and everything below it, parents first.
[[nodiscard]] std::vector<std::string> tree_of(sql::Tx& tx, std::string_view root);
// The same, locked. Throws not_found if there is none.
[[nodiscard]] std::vector<LockedInstance> lock_tree(sql::Tx& tx, std::string_view root);
DeleteCounts delete_instance(sql::Tx& tx, const LockedInstance& instance);

// How one transaction is run.
using Transact = std::function<void(const std::function<void(sql::Tx&)>& body)>;

// Deletes some instances, parents first in the list, in as many transactions as their rows need.
// `choose` locks and checks them; it runs again after a conflict, and refuses by throwing. A second
// call finishes an interrupted one: an instance's own row goes last, and its children before it.
DeleteCounts delete_chosen(const Transact& transact,
                           const std::function<std::vector<LockedInstance>(sql::Tx&)>& choose,
                           int rows_max);
// Removes executions up to `newest` that ended before `before_us` (0: whenever).
DeleteCounts prune_instance(const Transact& transact,
                            std::string_view instance,
                            std::int64_t keep,
                            std::int64_t before_us,
                            int rows_max);
DeleteCounts& operator+=(DeleteCounts& sum, const DeleteCounts& more);

}  // namespace holdfast::flow
