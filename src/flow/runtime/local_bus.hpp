// Where the runtimes and clients of one process tell each other what they have just committed, so
// that local work needs no polling. Everything here is a hint: what is lost is found in the store.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/flow/provider.hpp>

namespace holdfast::flow::detail {

// A start that a runtime of this process commits together with its first turn: one commit instead
// of two. The client waits for it; if it is declined, the client starts the instance itself.
class FirstTurn {
public:
    enum class Answer : std::uint8_t { created, declined };

    FirstTurn(std::string instance, StartMessage start)
        : instance_(std::move(instance)), start_(std::move(start)) {}

    [[nodiscard]] const std::string& instance() const noexcept { return instance_; }
    [[nodiscard]] const StartMessage& start() const noexcept { return start_; }

    // For the client. Declined as well if no commit has begun within `patience`: the code takes
    // long, or the runtime is overloaded. Throws what the commit threw.
    [[nodiscard]] Answer wait(milliseconds patience);

    // For the runtime, before the commit. False: the client does not wait any more.
    [[nodiscard]] bool begin_commit();
    // Only the first one counts.
    void settle(Answer answer);
    // Copied: an exception object shared by two threads would be destroyed on either.
    void fail(const Error& error);

private:
    const std::string instance_;
    const StartMessage start_;
    std::mutex mutex_;
    std::condition_variable told_;
    bool committing_ = false;
    std::optional<Answer> answer_;
    std::optional<Error> error_;
};

// Owes the client an answer: declines when it is destroyed.
class FirstTurnDuty {
public:
    FirstTurnDuty() = default;
    explicit FirstTurnDuty(std::shared_ptr<FirstTurn> turn) : turn_(std::move(turn)) {}
    ~FirstTurnDuty() { settle(FirstTurn::Answer::declined); }
    FirstTurnDuty(FirstTurnDuty&&) noexcept = default;
    FirstTurnDuty& operator=(FirstTurnDuty&& other) noexcept {
        std::swap(turn_, other.turn_);
        return *this;
    }

    explicit operator bool() const noexcept { return turn_ != nullptr; }
    FirstTurn* operator->() const noexcept { return turn_.get(); }
    void settle(FirstTurn::Answer answer) {
        if (turn_) {
            std::exchange(turn_, nullptr)->settle(answer);
        }
    }

private:
    std::shared_ptr<FirstTurn> turn_;
};

// How an instance has ended.
struct EndOfInstance {
    Status status = Status::completed;
    std::string output{};
};

// A runtime, as the others see it. Called without locks held by the bus's caller; must not
// block.
class LocalRuntime {
public:
    virtual ~LocalRuntime() = default;
    // An instance is about to be created with this token: it need not be claimed. Undone by
    // offer_start and by call_off.
    virtual void expect(const std::string& instance, const Uuid& token) = 0;
    virtual void call_off(const std::string& instance) = 0;
    // An instance was created; a runtime that accepts may take the first turn with this token.
    virtual bool offer_start(std::string_view workflow,
                             const std::string& instance,
                             const Uuid& token) = 0;
    // Whether this runtime takes the first turn and with it the start.
    virtual bool offer_first_turn(const std::shared_ptr<FirstTurn>& turn) = 0;
    // Mail was sent to an instance. True if this runtime has it in memory and will read the mail.
    virtual bool offer_mail(const std::string& instance) = 0;
    // Whether an offer would be accepted.
    [[nodiscard]] virtual bool runs(std::string_view workflow) const = 0;
    [[nodiscard]] virtual bool has(const std::string& instance) const = 0;
    // There may be mail or activities for any runtime.
    virtual void look_for_mail() = 0;
    virtual void look_for_activities() = 0;
};

class LocalBus {
public:
    void join(LocalRuntime& runtime);
    // Afterwards the runtime is not called any more.
    void leave(LocalRuntime& runtime);

    // Whether a runtime here takes it at once, so that other processes need not be notified.
    [[nodiscard]] bool runs(std::string_view workflow);
    [[nodiscard]] bool has(const std::string& instance);

    void expect(std::string_view workflow, const std::string& instance, const Uuid& token);
    void call_off(const std::string& instance);
    void started(std::string_view workflow, const std::string& instance, const Uuid& token);
    [[nodiscard]] bool take_first_turn(const std::shared_ptr<FirstTurn>& turn);
    void mailed(const std::string& instance);
    void activities_waiting();
    // From the database: another process wrote something.
    void notified(std::string_view payload);

    // Waiters for one key: an instance (its row has changed) or a request (its reply is there).
    void changed(const std::string& key);
    // The instance has ended, which is a change, too.
    void ended(const std::string& instance, const EndOfInstance& how);

    // Notified when `key` changes, from its construction on.
    class Watch {
    public:
        Watch(LocalBus& bus, std::string key);
        ~Watch();
        Watch(const Watch&) = delete;
        Watch& operator=(const Watch&) = delete;
        // Until the key has changed since the last wait, or `until`. False: nothing came.
        bool wait(Steady until);
        // How the instance has ended, if that was committed in this process.
        [[nodiscard]] std::optional<EndOfInstance> ended() const;

    private:
        friend class LocalBus;
        LocalBus& bus_;
        std::string key_;
        std::condition_variable told_;
        bool changed_ = false;
        std::optional<EndOfInstance> ended_;
    };

private:
    void tell(const std::string& key, const EndOfInstance* how);

    std::mutex runtimes_mutex_;
    std::vector<LocalRuntime*> runtimes_;
    std::mutex watches_mutex_;
    std::unordered_multimap<std::string, Watch*> watches_;
};

}  // namespace holdfast::flow::detail
