// A reply that waits for news, until its time is over or its call ends. It holds no thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "engine/turns.hpp"
#include "executor/alarms.hpp"
#include "rpc/call.hpp"

namespace holdfast::server::frontend {

enum class Woken : std::uint8_t {
    news,
    expired,  // Or the server stops: an answer without news is due.
    left,     // The caller has gone; an answer would reach no one.
};

// The first thing that happens decides; everything later is ignored. What happens before put() is
// remembered, so that all that can wake a reply is set up while its handler still owns it, and may
// throw.
template <class Response>
class ParkedReply {
public:
    using Reply = rpc::Reply<Response>;
    // Runs once, on the thread of what happened. Must not block.
    using Wake = std::function<void(Woken, Reply)>;

    ParkedReply(Alarms& alarms, Wake wake) : alarms_(alarms), wake_(std::move(wake)) {}

    void set_alarm(AlarmId alarm) {
        const std::lock_guard lock(mutex_);
        alarm_ = alarm;
    }

    // It ends when this object does.
    void keep(engine::Watch watch) {
        const std::lock_guard lock(mutex_);
        watch_ = std::move(watch);
    }

    void put(Reply reply) {
        std::unique_lock lock(mutex_);
        if (!woken_) {
            reply_.emplace(std::move(reply));
            return;
        }
        lock.unlock();
        run(std::move(reply));
    }

    void wake(Woken why) {
        std::unique_lock lock(mutex_);
        if (woken_) {
            return;
        }
        woken_ = why;
        if (!reply_) {
            return;
        }
        Reply reply = std::move(*reply_);
        reply_.reset();
        lock.unlock();
        run(std::move(reply));
    }

private:
    // woken_ does not change any more.
    void run(Reply reply) {
        if (alarm_ && *woken_ != Woken::expired) {
            alarms_.cancel(*alarm_);
        }
        wake_(*woken_, std::move(reply));
    }

    Alarms& alarms_;
    const Wake wake_;
    std::mutex mutex_;
    std::optional<Reply> reply_;
    std::optional<Woken> woken_;
    std::optional<AlarmId> alarm_;
    engine::Watch watch_;
};

}  // namespace holdfast::server::frontend
