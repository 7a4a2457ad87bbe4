// Where the runtimes and clients of one process tell each other what they have just committed, so
// that local work needs no polling. Everything here is a hint: what is lost is found in the store.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/uuid.hpp>

namespace holdfast::flow::detail {

// A runtime, as the others see it. Called without locks held by the exchange's caller; must not
// block.
class LocalRuntime {
public:
    virtual ~LocalRuntime() = default;
    // An instance is about to be created with this token: it need not be claimed. Undone by
    // offer_start and by call_off.
    virtual void expect(const std::string& instance, const Uuid& token) = 0;
    virtual void call_off(const std::string& instance) = 0;
    // An instance was created; whoever takes it may take the first turn with this token.
    virtual bool offer_start(std::string_view workflow,
                             const std::string& instance,
                             const Uuid& token) = 0;
    // Mail was sent to an instance. True if this runtime has it in hand and will look.
    virtual bool offer_mail(const std::string& instance) = 0;
    // Whether an offer would be taken.
    [[nodiscard]] virtual bool runs(std::string_view workflow) const = 0;
    [[nodiscard]] virtual bool has(const std::string& instance) const = 0;
    // There may be mail or activities for anybody.
    virtual void look_for_mail() = 0;
    virtual void look_for_activities() = 0;
};

class Exchange {
public:
    void join(LocalRuntime& runtime);
    // Afterwards the runtime is not called any more.
    void leave(LocalRuntime& runtime);

    // Whether somebody here will look at it at once, so that other processes need not be woken.
    [[nodiscard]] bool runs(std::string_view workflow);
    [[nodiscard]] bool has(const std::string& instance);

    void expect(std::string_view workflow, const std::string& instance, const Uuid& token);
    void call_off(const std::string& instance);
    void started(std::string_view workflow, const std::string& instance, const Uuid& token);
    void mailed(const std::string& instance);
    void activities_waiting();
    // From the database: another process wrote something.
    void notified(std::string_view payload);

    // Waiters for one key: an instance (its row has changed) or a request (its reply is there).
    void changed(std::string_view key);

    // Told when `key` changes, from its construction on.
    class Watch {
    public:
        Watch(Exchange& exchange, std::string key);
        ~Watch();
        Watch(const Watch&) = delete;
        Watch& operator=(const Watch&) = delete;
        // Until the key has changed since the last wait, or `until`. False: nothing came.
        bool wait(Steady until);

    private:
        friend class Exchange;
        Exchange& exchange_;
        std::string key_;
        std::condition_variable told_;
        bool changed_ = false;
    };

private:
    std::mutex runtimes_mutex_;
    std::vector<LocalRuntime*> runtimes_;
    std::mutex watches_mutex_;
    std::unordered_multimap<std::string, Watch*> watches_;
};

}  // namespace holdfast::flow::detail
