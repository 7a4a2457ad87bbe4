#include "sqlite/group_commit.hpp"

#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "sqlite/sqlite_errors.hpp"
#include <sqlite3.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast::sql::sqlite {
namespace {

// What a waiting request is told.
constexpr std::uint32_t signal_lead = 1;
constexpr std::uint32_t signal_answered = 2;
constexpr std::uint32_t signal_stop = 4;

// Whose body this thread is running, if any.
thread_local const GroupCommit* body_running_here = nullptr;

}  // namespace

struct GroupCommit::Request {
    const AttemptOptions& options;
    const Body& body;

    // The leader's while the body runs, the caller's once it is answered.
    std::exception_ptr failure{};
    std::vector<Notice> notices{};

    Wakeup wakeup{};

    // The line's.
    bool in_line = false;
    Request* previous = nullptr;
    Request* next = nullptr;
};

// --- the line -----------------------------------------------------------------------------------

void GroupCommit::Line::push_back(Request& request) noexcept {
    request.previous = last_;
    request.next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = &request;
    last_ = &request;
    ++size_;
}

void GroupCommit::Line::push_front(Line& other) noexcept {
    if (other.empty()) {
        return;
    }
    other.last_->next = first_;
    (first_ == nullptr ? last_ : first_->previous) = other.last_;
    first_ = other.first_;
    size_ += other.size_;
    other = Line{};
}

GroupCommit::Request* GroupCommit::Line::pop_front() noexcept {
    Request* const request = first_;
    if (request != nullptr) {
        remove(*request);
    }
    return request;
}

void GroupCommit::Line::remove(Request& request) noexcept {
    (request.previous == nullptr ? first_ : request.previous->next) = request.next;
    (request.next == nullptr ? last_ : request.next->previous) = request.previous;
    --size_;
}

// --- waiting ------------------------------------------------------------------------------------

void GroupCommit::attempt(const AttemptOptions& options, const Body& body) {
    if (body_running_here == this) {
        // It would wait for the very batch that it is part of.
        throw InvalidArgument(
            "a transaction was begun inside the body of another on the same database; use the Tx "
            "that the body was given");
    }
    Request request{options, body};
    if (stand_in_line(request)) {
        lead(request);
    }
    if (request.failure) {
        std::rethrow_exception(std::move(request.failure));
    }
}

bool GroupCommit::stand_in_line(Request& request) {
    {
        const std::lock_guard lock(mutex_);
        if (closed_) {
            throw DatabaseError(SqlState{"57P01"}, Outcome::not_applied, "the database is closed");
        }
        if (!led_) {
            led_ = true;
            return true;
        }
        request.in_line = true;
        line_.push_back(request);
    }
    return wait_in_line(request);
}

bool GroupCommit::wait_in_line(Request& request) {
    constexpr std::uint32_t told = signal_lead | signal_answered;
    std::uint32_t signals = 0;
    {
        const std::stop_callback on_stop(request.options.stop,
                                         [&request] { request.wakeup.signal(signal_stop); });
        signals = request.wakeup.wait(told | signal_stop, &request.options.deadline);
    }
    if ((signals & told) == 0) {
        if (leave_line(request)) {
            throw_left_line(request);
        }
        signals = request.wakeup.wait(told, nullptr);  // The body runs, or has run.
    }
    return (signals & signal_lead) != 0;
}

bool GroupCommit::leave_line(Request& request) {
    const std::lock_guard lock(mutex_);
    if (!request.in_line) {
        return false;
    }
    line_.remove(request);
    return true;
}

void GroupCommit::throw_left_line(const Request& request) const {
    if (request.options.stop.stop_requested()) {
        throw DatabaseError(ErrorClass::cancelled,
                            SqlState{"57014"},
                            Outcome::not_applied,
                            "the transaction was cancelled by its caller before it began");
    }
    if (connection_.waits_for_lock()) {
        throw DatabaseError(SqlState{"55P03"},
                            Outcome::not_applied,
                            "the transaction could not begin by its deadline, because another "
                            "process holds the database's lock; try again later");
    }
    throw DatabaseError(ErrorClass::deadline,
                        SqlState{"57014"},
                        Outcome::not_applied,
                        "the transaction's deadline passed while others were writing; give it a "
                        "later one");
}

// --- leading ------------------------------------------------------------------------------------

void GroupCommit::lead(Request& own) {
    Line answered;
    // If another body destroyed the physical transaction, ours goes again, alone: a leader
    // is not kept longer than its own work needs.
    if (!run_batch(own, batch_requests_max, answered)) {
        run_batch(own, 1, answered);
    }
    hand_over();
    while (Request* const request = answered.pop_front()) {
        request->wakeup.signal(signal_answered);  // It may be gone from here on.
    }
}

// One physical transaction, with `own` first. False if another body destroyed it: then that one is
// answered, and the others stand in line again.
bool GroupCommit::run_batch(Request& own, std::size_t requests_max, Line& answered) {
    own.failure = nullptr;
    // The first body needs no savepoint: undoing it undoes all there is.
    if (!begin(own) || !run_body(own)) {
        roll_back();
        return true;
    }
    Line batch;
    run_others(requests_max - 1, batch, answered);
    if (!connection_.in_transaction()) {
        return_to_line(batch);
        return false;
    }
    company_ = !batch.empty();
    commit(own, batch, answered);
    return true;
}

bool GroupCommit::begin(Request& own) noexcept {
    connection_.serve(&own.options);
    const int code = connection_.step(Control::begin_write);
    if (code != SQLITE_OK) {
        own.failure =
            std::make_exception_ptr(connection_.error(code, "the beginning of a transaction"));
    }
    connection_.serve(nullptr);
    return code == SQLITE_OK;
}

void GroupCommit::run_others(std::size_t requests_max, Line& batch, Line& answered) {
    const Deadline end = Deadline::after(batch_time_max);
    while (batch.size() < requests_max && !end.passed()) {
        Request* request = take_next();
        if (request == nullptr && (company_ || !batch.empty())) {
            // The writers of the last batch are about to write again. A thread that only lacks a
            // processor gets this one, and joins; without this the writers fall into two halves,
            // each waiting for the other's flush.
            std::this_thread::yield();
            request = take_next();
        }
        if (request == nullptr) {
            return;
        }
        run_in_savepoint(*request);
        if (!connection_.in_transaction()) {
            answered.push_back(*request);
            return;
        }
        batch.push_back(*request);
    }
}

void GroupCommit::run_in_savepoint(Request& request) noexcept {
    int code = connection_.step(Control::savepoint);
    if (code == SQLITE_OK && !run_body(request) && connection_.in_transaction()) {
        code = connection_.step(Control::rollback_to_savepoint);
    }
    if (code == SQLITE_OK && connection_.in_transaction()) {
        code = connection_.step(Control::release);
    }
    if (code != SQLITE_OK) {
        // What cannot be undone alone is undone with everything else, and the others run again.
        if (!request.failure) {
            request.failure = std::make_exception_ptr(connection_.error(code, "a savepoint"));
        }
        roll_back();
    }
}

bool GroupCommit::run_body(Request& request) noexcept {
    const GroupCommit* const outer = std::exchange(body_running_here, this);
    connection_.serve(&request.options);
    session_.start();
    try {
        connection_.check_served();
        request.body(session_);
        session_.settle();
        connection_.check_served();
        HOLDFAST_ASSERT(connection_.in_transaction());
        request.notices = session_.take_notices();
        request.failure = nullptr;
    } catch (...) {
        request.failure = std::current_exception();
    }
    connection_.serve(nullptr);
    body_running_here = outer;
    return request.failure == nullptr;
}

void GroupCommit::roll_back() noexcept {
    if (connection_.in_transaction()) {
        static_cast<void>(connection_.step(Control::rollback));
        HOLDFAST_ASSERT(!connection_.in_transaction());
    }
}

// Answers the batch. A body that failed has seen what the others wrote, so its answer stands only
// if they are committed; else it runs again.
void GroupCommit::commit(Request& own, Line& batch, Line& answered) noexcept {
    const int code = connection_.step(Control::commit);
    if (code == SQLITE_OK) {
        counters_.commits.fetch_add(1, std::memory_order_relaxed);
        publish(own);
        while (Request* const request = batch.pop_front()) {
            publish(*request);
            answered.push_back(*request);
        }
        return;
    }
    const DatabaseError error = connection_.error(code, "the commit", outcome_of_commit(code));
    roll_back();
    own.failure = std::make_exception_ptr(error);
    Line again;
    while (Request* const request = batch.pop_front()) {
        if (request->failure) {
            again.push_back(*request);
            continue;
        }
        // Each its own copy: they are handled, and perhaps added to, on different threads.
        request->failure = std::make_exception_ptr(error);
        answered.push_back(*request);
    }
    return_to_line(again);
}

void GroupCommit::publish(Request& request) {
    if (request.failure) {
        return;
    }
    for (Notice& notice : request.notices) {
        hub_.publish(std::move(notice));
    }
}

GroupCommit::Request* GroupCommit::take_next() {
    const std::lock_guard lock(mutex_);
    Request* const request = line_.pop_front();
    if (request != nullptr) {
        request->in_line = false;
    }
    return request;
}

void GroupCommit::return_to_line(Line& batch) {
    const std::lock_guard lock(mutex_);
    Line again;
    while (Request* const request = batch.pop_front()) {
        request->in_line = true;
        again.push_back(*request);
    }
    line_.push_front(again);
}

void GroupCommit::hand_over() {
    Request* successor = nullptr;
    {
        const std::lock_guard lock(mutex_);
        successor = line_.pop_front();
        if (successor == nullptr) {
            led_ = false;
            idle_.notify_all();
        } else {
            successor->in_line = false;
            company_ = true;
        }
    }
    if (successor != nullptr) {
        successor->wakeup.signal(signal_lead);
    }
}

// --- stopping -----------------------------------------------------------------------------------

std::size_t GroupCommit::waiting() const {
    const std::lock_guard lock(mutex_);
    return line_.size();
}

bool GroupCommit::busy() const {
    const std::lock_guard lock(mutex_);
    return led_;
}

void GroupCommit::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
}

bool GroupCommit::drain(Deadline deadline) {
    Line refused;
    {
        std::unique_lock lock(mutex_);
        if (idle_.wait_until(lock, deadline.when(), [this] { return !led_; })) {
            return true;
        }
        while (Request* const request = line_.pop_front()) {
            request->in_line = false;
            refused.push_back(*request);
        }
        connection_.interrupt();
    }
    while (Request* const request = refused.pop_front()) {
        request->failure =
            std::make_exception_ptr(DatabaseError(SqlState{"57P01"},
                                                  Outcome::not_applied,
                                                  "the database was closed before the "
                                                  "transaction began"));
        request->wakeup.signal(signal_answered);
    }
    return false;
}

void GroupCommit::wait_until_idle() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return !led_; });
}

}  // namespace holdfast::sql::sqlite
