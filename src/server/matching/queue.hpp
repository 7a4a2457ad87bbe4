// One task queue.
//
// Locks, in the order in which they may be taken: that of a shard of the map of queues, a queue's,
// and last those of EndedWorkers, OfferPlaces and rpc::Call. None is held while a TaskStarter, an
// offer, a reply or Alarms is called.
//
// What is matched under the lock goes to an outbox, and one thread at a time empties it. So a
// starter that lets a reservation go at once, which matches the next task, does not call itself
// deeper and deeper.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "matching/backlog.hpp"
#include "matching/matching.hpp"
#include "matching/pace.hpp"
#include "matching/pollers.hpp"
#include "matching/surroundings.hpp"

namespace holdfast::server::matching {

// A poll within the room. Exactly one holds it: its queue, while it waits; or a Reservation, or the
// thread that brings it.
struct Parked {
    enum class Place : std::uint8_t { held, waiting, gone };
    using List = std::list<std::shared_ptr<Parked>>;

    Parked(std::shared_ptr<Queue> of_queue, Poll of_poll)
        : queue(std::move(of_queue)), poll(std::move(of_poll)) {}

    // Of the one that holds it.
    const std::shared_ptr<Queue> queue;
    Poll poll;
    Steady came{};
    Steady expires{};
    std::optional<AlarmId> alarm;  // Of its expiry; set before it waits for the first time.

    // Under the queue's lock.
    Place place = Place::held;
    bool ended = false;       // The caller left, or the server stops.
    std::uint64_t epoch = 0;  // Of the queue when the poll came.
    bool charged = false;     // A token was taken for the task it is reserved for,
    bool fresh = false;       // which did not wait in the queue.
    List::iterator where;     // While it waits.
};

class Queue : public std::enable_shared_from_this<Queue> {
public:
    Queue(QueueKey key, std::shared_ptr<Surroundings> around);

    [[nodiscard]] const QueueKey& key() const noexcept { return key_; }

    void poll(Poll poll);
    [[nodiscard]] std::optional<Reservation> reserve(int priority);
    void add(QueuedTask task);
    void put_back(QueuedTask task);
    void offer(OfferId id, std::function<void(Reservation)> taken);
    bool withdraw(OfferId id);
    [[nodiscard]] bool polled_recently();
    void unload();
    void end_polls(const std::string& worker_instance_key);
    void limit_rate(std::optional<double> tasks_per_second);
    void set_weights(std::map<std::string, double> weights);
    [[nodiscard]] QueueView view();
    void add_to(MatchingTotals& totals);

    // Once Surroundings::stopping is set.
    void stop();

    // True if nothing is lost when it is forgotten.
    [[nodiscard]] bool idle();

    // Of a Reservation. Returns by how many the worker should change its polls, if it should.
    [[nodiscard]] std::optional<int> take(Parked& parked);
    void give_back(std::shared_ptr<Parked> parked);

private:
    using Lock = std::unique_lock<std::mutex>;
    using Taken = std::function<void(Reservation)>;
    struct Offer {
        OfferId id{};
        Taken taken;
    };
    struct Match {
        std::shared_ptr<Parked> poll;
        std::variant<QueuedTask, Offer> work;
    };
    enum class Entry : std::uint8_t { arriving, returning };
    enum class Leaving : std::uint8_t { expired, ended };

    // More tasks that were put back than this stop the queue until the first pause is over: then it
    // is not a matter of single runs.
    static constexpr std::size_t put_back_max = 16;

    [[nodiscard]] Time time_now() const { return around_->clock.wall_now(); }
    void listen(const std::shared_ptr<Parked>& parked);
    void set_expiry(const std::shared_ptr<Parked>& parked);

    // A poll that is held waits, is matched or is answered.
    void seat(const std::shared_ptr<Parked>& parked, Entry entry);
    void arrive(Parked& parked, Steady now);
    [[nodiscard]] bool must_end(const Parked& parked, Steady now) const;
    void retire(Parked& parked, Steady now, bool seen);
    void leave(const std::shared_ptr<Parked>& parked, Leaving why);
    void dismiss(Parked& parked, bool alarm_rang) const;
    void dismiss_all(const Parked::List& parked) const;

    // What the next poll gets.
    enum class Next : std::uint8_t { nothing, task, offer };
    [[nodiscard]] Next next(Steady now);
    [[nodiscard]] bool limited() const noexcept { return key_.type != QueueType::workflow; }
    [[nodiscard]] std::shared_ptr<Parked> first_poll();
    [[nodiscard]] std::shared_ptr<Parked> unpark(Parked::List::iterator where);
    void match(Steady now);
    void match_task(std::shared_ptr<Parked> poll, Steady now);
    void match_offer(std::shared_ptr<Parked> poll);
    [[nodiscard]] double weight_of(const QueuedTask& task) const;
    void set_rate(Steady now);
    [[nodiscard]] bool rate_limited(Steady now) const;
    [[nodiscard]] std::optional<int> scaling(const Parked& parked, Steady now);
    void ring_at_next_token(Steady now);

    // Delivers what was matched. The lock is released meanwhile.
    void hand_over(Lock& lock);
    void give(Match match) const;
    void token_rings(Steady at);
    void pause_ends(std::uint64_t put_back);

    const QueueKey key_;
    const std::shared_ptr<Surroundings> around_;

    std::mutex mutex_;
    Parked::List waiting_;
    Backlog backlog_;
    std::map<OfferId, Taken> offers_;
    std::map<std::uint64_t, QueuedTask> put_back_;  // Until their pause is over.
    std::uint64_t last_put_back_ = 0;

    Pollers pollers_;
    std::uint64_t epoch_ = 0;     // Counts how often the queue was unloaded.
    std::size_t present_ = 0;     // Polls of this epoch that wait or are held.
    std::optional<Steady> seen_;  // The last moment at which a poll came, or ended by itself.
    RecentRate added_;
    RecentRate dispatched_;

    Pace pace_;
    std::optional<double> worker_rate_;
    std::optional<double> configured_rate_;
    std::optional<Steady> limited_;          // When tasks waited for the rate last.
    Pace more_polls_;                        // How often a worker is told to poll more.
    std::map<std::string, double> weights_;  // Of fairness keys, as configured.
    std::optional<Steady> token_alarm_;      // The earliest that is set.
    std::optional<Steady> token_wanted_;     // To be set, without the lock.

    std::vector<Match> outbox_;
    std::vector<Match> delivering_;  // Of the thread that delivers.
    bool handing_over_ = false;
    std::condition_variable handed_over_;
};

}  // namespace holdfast::server::matching
