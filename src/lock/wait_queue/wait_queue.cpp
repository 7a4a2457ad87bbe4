#include "wait_queue/wait_queue.hpp"

#include <algorithm>
#include <utility>

#include "statements/statements.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/lock/error.hpp>

namespace holdfast::lock {
namespace {

// The longest wait without a look: with and without notifications between processes.
constexpr std::chrono::milliseconds sleep_when_called{1'000};
constexpr std::chrono::milliseconds sleep_when_not{20};

}  // namespace

// One waiter. What other threads change is guarded by the queue's mutex.
class WaitQueue::Standing final : public WaitTicket {
public:
    Standing(WaitQueue& line, std::string key, const LockId& lock_id, Deadline patience)
        : line_(line), key_(std::move(key)), lock_id_(lock_id), patience_(patience) {
        const std::lock_guard lock(line_.mutex_);
        std::list<Standing*>& neighbours = line_.neighbours_[key_];
        neighbours.push_back(this);
        first_ = neighbours.size() == 1;
    }

    ~Standing() override {
        {
            const std::lock_guard lock(line_.mutex_);
            line_.standing_.erase(waiter_);
        }
        if (!arrived_) {
            step_out({});
        }
        try {
            if (in_line_ && !called_) {
                leave();
            }
            if (in_line_ && !arrived_) {
                // If the turn came meanwhile, the next waiter should not wait for it to lapse.
                line_.pass_on(line_.lock_sql_.free(brief(), lock_id_));
            }
        } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
            // A ticket left behind costs the others one reservation. A caller whose attempt has an
            // unknown outcome knows the lease, and abandons the lock.
        }
    }

    void wait_behind(Steady until, const std::stop_token& stop) override {
        std::unique_lock lock(line_.mutex_);
        wake_.wait_until(lock, stop, until, [this] { return first_; });
        wake_.wait_until(lock, stop, std::min(until, trusts_until_), [this] { return freed_; });
    }

    bool join() override {
        try {
            if (in_line_ && still_there()) {
                return false;
            }
            stand();
            return true;
        } catch (const std::exception&) {
            throw to_lock_error(std::current_exception(), {.key = key_});
        }
    }

    void wait(Steady until, const std::stop_token& stop) override {
        std::unique_lock lock(line_.mutex_);
        const Steady latest =
            std::min(until, std::chrono::steady_clock::now() + line_.longest_sleep_);
        wake_.wait_until(lock, stop, latest, [this] { return called_ || look_; });
        look_ = false;
        seen_ = false;
    }

    void arrived() noexcept override {
        if (!std::exchange(arrived_, true)) {
            step_out(std::chrono::steady_clock::now() + line_.neighbourly_);
        }
    }

    // The waiter ahead has left. If it holds the lock, it announces its release; that is relied on
    // only until `trusts_until`.
    void come_first(Steady trusts_until) {
        first_ = true;
        trusts_until_ = trusts_until;
        wake_.notify_all();
    }
    void find_it_free() {
        freed_ = true;
        wake_.notify_all();
    }

    void call() {
        called_ = true;
        wake_.notify_all();
    }
    void look() {
        look_ = true;
        wake_.notify_all();
    }

private:
    void step_out(Steady trusted_until) noexcept {
        const std::lock_guard lock(line_.mutex_);
        const auto found = line_.neighbours_.find(key_);
        std::list<Standing*>& neighbours = found->second;
        neighbours.remove(this);
        if (neighbours.empty()) {
            line_.neighbours_.erase(found);
        } else if (first_) {
            neighbours.front()->come_first(trusted_until);
        }
    }

    // A notification removes our row; while we slept, it may have been lost.
    bool still_there() {
        {
            const std::lock_guard lock(line_.mutex_);
            if (called_ || seen_) {
                return !called_;
            }
        }
        sql::TxOptions options = brief();
        options.read_only = true;
        seen_ = !line_.db_
                     .run("LockLookInLine",
                          options,
                          statements::stands_in_line.with(line_.tables_),
                          key_,
                          lock_id_.reveal())
                     .rows.empty();
        return seen_;
    }

    void stand() {
        line_.listen();
        {
            const std::lock_guard lock(line_.mutex_);
            if (waiter_.empty()) {
                waiter_ = LockId::fresh().reveal();
                line_.standing_.emplace(waiter_, this);
            }
            called_ = false;
        }
        const auto patience =
            std::chrono::duration_cast<std::chrono::milliseconds>(patience_.remaining());
        sql::TxOptions options = brief();
        options.durability = sql::Durability::relaxed;
        in_line_ = true;  // Even if the answer gets lost: then the row may be there.
        (void)line_.db_.run("LockJoinLine",
                            options,
                            statements::join_line.with(line_.tables_),
                            key_,
                            lock_id_.reveal(),
                            waiter_,
                            patience.count());
        seen_ = true;
    }

    [[nodiscard]] sql::TxOptions brief() const {
        return {.deadline = Deadline::after(line_.call_timeout_), .urgent = true};
    }

    void leave() {
        sql::TxOptions options = brief();
        options.durability = sql::Durability::relaxed;
        (void)line_.db_.run("LockLeaveLine",
                            options,
                            statements::leave_line.with(line_.tables_),
                            key_,
                            lock_id_.reveal());
    }

    WaitQueue& line_;
    std::string key_;
    LockId lock_id_;
    Deadline patience_;
    std::condition_variable_any wake_;
    bool first_ = false;  // Of those of this process.
    bool freed_ = false;  // A thread of this process has released the key since we are the first.
    Steady trusts_until_{};

    std::string waiter_;    // Our name in the database's queue; empty before we joined it.
    bool called_ = false;   // Our turn has come, and our row has gone.
    bool look_ = false;     // Something may have been missed.
    bool in_line_ = false;  // Our row may be in the database's queue.
    bool seen_ = false;     // There since we last slept.
    bool arrived_ = false;
};

WaitQueue::WaitQueue(sql::Database& db,
                     const sql::TableNames& tables,
                     LockSql& lock_sql,
                     std::chrono::milliseconds call_timeout,
                     std::chrono::milliseconds neighbourly)
    : db_(db),
      tables_(tables),
      lock_sql_(lock_sql),
      call_timeout_(call_timeout),
      longest_sleep_(db.dialect().notifies ? sleep_when_called : sleep_when_not),
      neighbourly_(neighbourly) {}

WaitQueue::~WaitQueue() = default;

std::unique_ptr<WaitTicket> WaitQueue::line_up(std::string key,
                                               const LockId& lock_id,
                                               Deadline patience) {
    return std::make_unique<Standing>(*this, std::move(key), lock_id, patience);
}

void WaitQueue::listen() {
    const std::lock_guard lock(mutex_);
    if (!subscription_) {
        subscription_ =
            db_.subscribe(waiters_channel, [this](std::string_view waiter) { call(waiter); });
    }
}

void WaitQueue::pass_on(const Freed& freed) {
    if (!freed.called.empty()) {
        call(freed.called);  // Faster than the notification, if it is one of us.
        return;
    }
    const std::lock_guard lock(mutex_);
    if (const auto found = neighbours_.find(freed.key); found != neighbours_.end()) {
        found->second.front()->find_it_free();
    }
}

void WaitQueue::call(std::string_view waiter) {
    const std::lock_guard lock(mutex_);
    if (waiter.empty()) {
        for (const auto& [name, standing] : standing_) {
            standing->look();
        }
    } else if (const auto found = standing_.find(waiter); found != standing_.end()) {
        found->second->call();
    }
}

}  // namespace holdfast::lock
