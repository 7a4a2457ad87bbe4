#include <holdfast/sql/tx.hpp>

#include <algorithm>

#include "engine.hpp"
#include "statements.hpp"
#include <fmt/core.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast::sql {
namespace {

struct SameAs {
    const Cell& cell;

    bool operator()(const Uuid& token) const {
        const auto* bytes = std::get_if<Bytes>(&cell);
        const auto* text = std::get_if<std::string>(&cell);
        return (bytes != nullptr && Uuid::from_bytes(*bytes) == token) ||
               (text != nullptr && Uuid::parse(*text) == token);
    }
    template <class T>
    bool operator()(const T& token) const {
        const T* const found = std::get_if<T>(&cell);
        return found != nullptr && *found == token;
    }
};

bool holds(const Rows& rows, const std::vector<Owned>& tokens) {
    if (rows.size() != 1 || rows[0].columns() < tokens.size()) {
        return false;
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (!std::visit(SameAs{rows[0].cell(i)}, tokens[i])) {
            return false;
        }
    }
    return true;
}

}  // namespace

Rows Answer::rows() {
    return session_->take(ticket_).rows;
}

const Rows& LockedRow::rows() {
    if (!rows_) {
        rows_ = tx_->session_.take(ticket_).rows;
    }
    return *rows_;
}

Guard LockedRow::verify(std::vector<Owned> tokens) {
    Guard guard{.what = what_, .key = key_, .tokens = std::move(tokens)};
    tx_->add_verified(guard, rows());
    return guard;
}

bool FenceAnswer::held() {
    return tx_->take_fenced(ticket_);
}

std::size_t Tx::send(const Statement& statement, std::span<const Param> args, Reply reply) {
    const Rendered& text = engine_.rendered(statement, args.size());
    if (text.writes) {
        if (read_only_) {
            throw InvalidArgument(fmt::format(
                "statement '{}' writes, but the transaction is read only; drop read_only",
                text.name));
        }
        ++writes_;
    }
    if (text.clocks.empty()) {
        return session_.send(Call{&text, args}, reply == Reply::kept);
    }
    std::vector<Param> with_clocks(args.begin(), args.end());
    for (const ClockReading reading : text.clocks) {
        with_clocks.emplace_back(session_.clock_parameter(reading, clock_offset_us()));
    }
    return session_.send(Call{&text, with_clocks}, reply == Reply::kept);
}

// A test that moves the clock during a transaction must not move it inside the transaction.
std::int64_t Tx::clock_offset_us() {
    if (!clock_offset_us_ || dialect().clock_moves) {
        clock_offset_us_ = engine_.clock_offset_us();
    }
    return *clock_offset_us_;
}

std::int64_t Tx::wait_count(std::size_t ticket) {
    return session_.take(ticket).changed;
}

bool Tx::is_verified(const Guard& guard) const noexcept {
    return std::find(verified_.begin(), verified_.end(), guard) != verified_.end();
}

Tx::Fence Tx::send_guarded(const Guard& guard,
                           const FencedStatement& statement,
                           std::span<const Param> args) {
    const std::size_t ticket = send(statement.write(), guarded_args(guard, args), Reply::kept);
    return {
        .ticket = ticket, .guard = guard, .statement = &statement, .verified = is_verified(guard)};
}

bool Tx::held(std::int64_t changed, const Fence& fence) {
    // More than one row: the statement does not name its row by the whole key.
    HOLDFAST_ASSERT(changed <= 1);
    if (changed == 0 && fence.verified) {
        stop_at_missed_write(fence.guard, *fence.statement);
    }
    return changed == 1;
}

void Tx::send_fenced(const Guard& guard,
                     const FencedStatement& statement,
                     std::span<const Param> args) {
    Fence fence = send_guarded(guard, statement, args);
    if (session_.replies_cost()) {
        pending_.push_back(std::move(fence));
    } else {
        require_held(session_.take(fence.ticket).changed, fence);
    }
}

bool Tx::wait_fenced(const Guard& guard,
                     const FencedStatement& statement,
                     std::span<const Param> args) {
    const Fence fence = send_guarded(guard, statement, args);
    return held(session_.take(fence.ticket).changed, fence);
}

std::size_t Tx::queue_fenced(const Guard& guard,
                             const FencedStatement& statement,
                             std::span<const Param> args) {
    pending_.push_back(send_guarded(guard, statement, args));
    return pending_.back().ticket;
}

bool Tx::take_fenced(std::size_t ticket) {
    const auto asked = std::find_if(pending_.begin(), pending_.end(), [&](const Fence& fence) {
        return fence.ticket == ticket;
    });
    HOLDFAST_ASSERT(asked != pending_.end());
    const Fence fence = std::move(*asked);
    pending_.erase(asked);
    return held(session_.take(ticket).changed, fence);
}

void Tx::require_held(std::int64_t changed, const Fence& fence) {
    if (held(changed, fence)) {
        return;
    }
    const Statement& found = fence.statement->found();
    const Rows rows = session_.take(send(found, key_args(fence.guard), Reply::kept)).rows;
    lose(fence.guard, describe_found(rows));
}

LockedRow Tx::ask_locked(std::string what, std::vector<Owned> key, const Statement& locked_read) {
    const Guard row{.what = std::move(what), .key = std::move(key), .tokens = {}};
    const std::size_t ticket = send(locked_read, key_args(row), Reply::kept);
    return {*this, ticket, row.what, row.key};
}

void Tx::add_verified(const Guard& guard, const Rows& rows) {
    if (!holds(rows, guard.tokens)) {
        lose(guard, describe_found(rows));
    }
    verified_.push_back(guard);
}

void Tx::verify(const Guard& guard, const Statement& locked_read) {
    (void)ask_locked(guard.what, guard.key, locked_read).verify(guard.tokens);
}

void Tx::lose(const Guard& guard, std::string found) {
    lost_.emplace(condition_failed(guard, std::move(found)));
    throw ConditionFailed(*lost_);
}

std::vector<Tx::Fence> Tx::settle() {
    if (lost_) {
        throw ConditionFailed(*lost_);
    }
    // A fence that finds no row is not an SQL error, so a commit in the same flush would apply the
    // other writes. It may share the flush only if there are none, or if its row is locked and
    // checked.
    const bool alone = writes_ == 1;
    std::vector<Fence> at_commit;
    for (Fence& fence : pending_) {
        if (alone || fence.verified) {
            session_.check_at_commit(fence.ticket);
            at_commit.push_back(std::move(fence));
        } else {
            require_held(session_.take(fence.ticket).changed, fence);
        }
    }
    pending_.clear();
    return at_commit;
}

void Tx::notify(std::string_view channel, std::string_view payload) {
    session_.notify(channel, payload);
}

const Dialect& Tx::dialect() const noexcept {
    return engine_.dialect();
}

Timestamp Tx::now() {
    return query(statements::now)[0].get<Timestamp>(0);
}

}  // namespace holdfast::sql
