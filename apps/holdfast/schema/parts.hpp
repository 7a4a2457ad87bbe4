// The schema parts that this binary knows: the one list of them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/base/config.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/sql/schema.hpp>

namespace holdfast::app {

// The names of the lock tables, as configured.
[[nodiscard]] lock::Names lock_names(const Config& config);

// Lends the parts. Invalid_argument if a configured table cannot be called that.
class Parts {
public:
    explicit Parts(const Config& config);
    explicit Parts(const lock::Names& names);
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;

    [[nodiscard]] std::span<const sql::SchemaPart> all() const noexcept { return parts_; }
    // Those that are applied when none is named: all but the store, whose table names may collide
    // with tables of the user.
    [[nodiscard]] std::span<const sql::SchemaPart> usual() const noexcept {
        return all().first(parts_.size() - 1);
    }
    // Requires: `name` is in the list. Else invalid_argument, which names those that are.
    // The locks are "lock", whatever their tables are called.
    [[nodiscard]] const sql::SchemaPart& named(std::string_view name) const;

private:
    lock::Schema lock_;
    std::array<sql::SchemaPart, 4> parts_;
};

// The names of the parts, independent of the tables' names.
[[nodiscard]] std::vector<std::string> part_names();

}  // namespace holdfast::app
