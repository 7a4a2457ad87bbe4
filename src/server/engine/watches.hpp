// Readers that wait for news of a run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace holdfast::server::engine {

// Safe to share between threads.
class Watches {
public:
    // A reader that waits until the run has the event, or is closed. It is told once at most, and
    // not after the handle is destroyed, unless that is under way.
    class Watch {
    public:
        Watch(Watches& watches,
              std::string run_id,
              std::int64_t event_id,
              std::function<void()> told);
        ~Watch();
        Watch(const Watch&) = delete;
        Watch& operator=(const Watch&) = delete;

    private:
        friend class Watches;
        Watches& watches_;
        const std::string run_id_;
        const std::int64_t event_id_;
        std::function<void()> told_;  // Empty once it was told.
    };

    // The run has all events before `next_event_id`.
    void tell(const std::string& run_id, std::int64_t next_event_id, bool closed);

private:
    std::mutex mutex_;
    std::map<std::string, std::set<Watch*>> waiting_;
};

}  // namespace holdfast::server::engine
