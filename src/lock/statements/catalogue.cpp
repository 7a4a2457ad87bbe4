#include <array>

#include "statements/statements.hpp"

#include <holdfast/lock/locks.hpp>

namespace holdfast::lock {
namespace {

using namespace statements;

constexpr std::array<const sql::Statement*, 36> portable{
    &live_rival,    &count_up,       &take,           &holder,        &by_id,
    &first_in_line, &reserve,        &free,           &prolong,       &purge,
    &join_line,     &stands_in_line, &leave_line,     &purge_line,    &expiry,
    &remove_dead,   &find,           &find_by_id,     &list,          &skip_fence,
    &free_by_fence, &lift_fences,    &restore_fences, &fences_behind, &page_of_fences,
    &skip_fences,   &assert_held,    &accept_fence,   &permits_of,    &next_permit_fence,
    &take_permit,   &prolong_permit, &purge_permits,  &free_permit,   &synchronous,
    &describe_file,
};
constexpr std::array<const sql::Statement*, 8> postgres_only{
    &take_at_once,
    &free_unless_awaited,
    &free_at_once,
    &prolong_at_once,
    &purge_skipping,
    &durability,
    &bound_idleness,
    &describe_server,
};

}  // namespace

const sql::Catalogue& catalogue() noexcept {
    static const Schema schema;
    static const sql::Catalogue all{.floor = "lock",
                                    .statements = portable,
                                    .fenced = {},
                                    .guarded = {},
                                    .postgres_only = postgres_only,
                                    .names = &schema.tables()};
    return all;
}

}  // namespace holdfast::lock
