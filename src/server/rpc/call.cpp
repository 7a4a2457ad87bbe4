#include "rpc/call.hpp"

namespace holdfast::server::rpc {

Call::Call(CallInfo info, Finish finish) : info_(std::move(info)), finish_(std::move(finish)) {}

bool Call::answer(Answer answer) {
    Finish finish;
    std::function<void(Ending)> told;  // Destroyed without the lock: it may own a Reply.
    {
        const std::lock_guard lock(mutex_);
        finish = std::exchange(finish_, nullptr);
        told = std::exchange(told_, nullptr);
    }
    if (!finish) {
        return false;
    }
    finish(std::move(answer));
    return true;
}

void Call::cancel() {
    Finish finish;
    {
        const std::lock_guard lock(mutex_);
        finish = std::exchange(finish_, nullptr);
        if (!finish) {
            return;
        }
    }
    finish(Refusal(StatusCode::cancelled, "the call was cancelled"));
    tell(std::unique_lock(mutex_), Ending::cancelled);
}

void Call::stop() {
    std::unique_lock lock(mutex_);
    if (finish_) {
        tell(std::move(lock), Ending::stopping);
    }
}

void Call::tell(std::unique_lock<std::mutex> lock, Ending ending) {
    if (ending_) {
        return;
    }
    ending_ = ending;
    const auto told = std::exchange(told_, nullptr);
    lock.unlock();
    if (told) {
        told(ending);
    }
}

void Call::on_end(std::function<void(Ending)> told) {
    {
        const std::lock_guard lock(mutex_);
        if (!ending_) {
            // A call may be over and its handler not told yet: cancel() is on its way.
            told_ = std::move(told);
            return;
        }
    }
    told(*ending_);  // Set once, and never again.
}

bool Call::over() const {
    const std::lock_guard lock(mutex_);
    return !finish_;
}

void Call::begin_run() {
    const std::lock_guard lock(mutex_);
    running_ = true;
}

void Call::end_run(std::optional<Refusal> thrown) {
    bool dropped = false;
    {
        const std::lock_guard lock(mutex_);
        running_ = false;
        dropped = dropped_;
    }
    if (thrown) {
        answer(std::move(*thrown));
    } else if (dropped) {
        answer(Refusal(StatusCode::internal, info_.method + " was dropped without an answer"));
    }
}

void Call::drop() {
    {
        const std::lock_guard lock(mutex_);
        dropped_ = true;
        if (running_) {
            return;
        }
    }
    answer(Refusal(StatusCode::internal, info_.method + " was dropped without an answer"));
}

}  // namespace holdfast::server::rpc
