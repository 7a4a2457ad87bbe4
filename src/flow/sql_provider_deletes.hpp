// Removing an instance with all that belongs to it, inside a transaction.
#pragma once

#include <string>
#include <string_view>

#include <holdfast/base/uuid.hpp>
#include <holdfast/flow/provider.hpp>
#include <holdfast/sql/tx.hpp>

namespace holdfast::flow {

// An instance whose row this transaction has locked: nobody commits a turn of it meanwhile, so its
// children are all that there will be.
struct LockedInstance {
    std::string instance;
    Uuid token;
    Status status = Status::pending;
    std::optional<std::string> parent;
    ExecutionId execution = 1;
};

[[nodiscard]] std::optional<LockedInstance> lock_instance(sql::Tx& tx, std::string_view instance);
[[nodiscard]] std::vector<std::string> children_of(sql::Tx& tx, std::string_view instance);
// The instance and everything below it, parents first. Throws not_found if there is none.
[[nodiscard]] std::vector<LockedInstance> lock_tree(sql::Tx& tx, std::string_view root);
DeleteCounts delete_instance(sql::Tx& tx, const LockedInstance& instance);
DeleteCounts& operator+=(DeleteCounts& sum, const DeleteCounts& more);

}  // namespace holdfast::flow
