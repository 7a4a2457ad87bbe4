#include <array>

#include "provider/statements_admin.hpp"

#include <holdfast/flow/sql_provider.hpp>

namespace holdfast::flow {

namespace {

constexpr std::array<const sql::Statement*, 97> plain{
    &statements::create_instance,
    &statements::create_advanced,
    &statements::adopt_mailbox,
    &statements::add_start,
    &statements::find_origin,
    &statements::announce_mail,
    &statements::open_early_mailbox,
    &statements::instance_exists,
    &statements::add_message,
    &statements::post_message,
    &statements::settle_mailbox,
    &statements::open_new_mailbox,
    &statements::close_mailbox,
    &statements::drop_messages,
    &statements::drop_execution_messages,
    &statements::drop_timers,
    &statements::schedule_start,
    &statements::hurry_start,
    &statements::is_suspended,
    &statements::consume_messages,
    &statements::delay_messages,
    &statements::cancel_timers,
    &statements::count_attempts,
    &statements::read_mail,
    &statements::find_ready,
    &statements::find_ready_unlocked,
    &statements::peek_instance,
    &statements::archive_execution,
    &statements::look_at_turn,
    &statements::who_wrote,
    &statements::add_history,
    &statements::read_history,
    &statements::read_seeds,
    &statements::set_kv,
    &statements::erase_kv,
    &statements::clear_kv,
    &statements::seed_kv,
    &statements::reset_kv,
    &statements::bury_kv,
    &statements::set_attribute,
    &statements::remove_attribute,
    &statements::add_reply,
    &statements::add_activity,
    &statements::find_activities,
    &statements::find_activities_unlocked,
    &statements::activity_tags,
    &statements::claim_activity,
    &statements::end_activity,
    &statements::end_free_activity,
    &statements::look_at_activity,
    &statements::renew_activity,
    &statements::keep_heartbeat,
    &statements::release_activity,
    &statements::drop_activity,
    &statements::drop_activities,
    &statements::claim_session,
    &statements::touch_session,
    &statements::renew_sessions,
    &statements::sweep_sessions,
    &statements::read_info,
    &statements::read_kv,
    &statements::read_all_kv,
    &statements::find_reply,
    &statements::take_reply,
    &statements::read_clock,
    &statements::earliest_activity,
    &statements::next_mail,
    &statements::next_activity,
    &statements::list_instances,
    &statements::list_by_attribute,
    &statements::list_executions,
    &statements::current_execution,
    &statements::list_children,
    &statements::count_instances,
    &statements::count_rest,
    &statements::lock_instance,
    &statements::count_rows,
    &statements::shrink_history,
    &statements::shrink_messages,
    &statements::shrink_executions,
    &statements::shrink_activities,
    &statements::delete_history,
    &statements::delete_executions,
    &statements::delete_messages,
    &statements::delete_kv,
    &statements::delete_attributes,
    &statements::find_ended,
    &statements::is_ended,
    &statements::find_prunable,
    &statements::find_prunable_instances,
    &statements::prune_history,
    &statements::prune_execution,
    &statements::find_early,
    &statements::sweep_replies,
    &statements::import_instance,
    &statements::import_kv,
    &statements::open_mailbox,
};
constexpr std::array<const sql::FencedStatement*, 10> fenced{
    &statements::claim_instance,
    &statements::release_instance,
    &statements::hurry_instance,
    &statements::renew_instance,
    &statements::advance,
    &statements::advance_fully,
    &statements::advance_execution,
    &statements::resume_instance,
    &statements::end_for_deletion,
    &statements::delete_instance,
};
constexpr std::array<std::string_view, 1> tokens{"lock_token"};
constexpr std::array guarded{sql::GuardedTable{"flow_instances", tokens}};

}  // namespace

const sql::Catalogue& catalogue() noexcept {
    static constexpr sql::Catalogue all{
        .floor = "flow", .statements = plain, .fenced = fenced, .guarded = guarded};
    return all;
}

}  // namespace holdfast::flow
