// Many instances of the current pool under a simulated clock.
//
// Each pool drives the production machine of the pool floor: what it asks to open takes a permit of
// the client's limiter, then asks the cluster, which has limits of its own. The pools
// of one host, a process, start and end together and share its part of the fleet's limits.
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "event_queue.hpp"
#include "fleet/limits.hpp"
#include "fleet/table.hpp"
#include "model.hpp"

#include <holdfast/base/random.hpp>
#include <holdfast/pool/breaker.hpp>
#include <holdfast/pool/machine.hpp>
#include <holdfast/pool/token_bucket.hpp>

namespace holdfast::sim {

class Fleet {
public:
    Fleet(const Scenario& scenario, std::uint64_t seed, const Watch& watch);

    Result run();

private:
    enum class Step : std::uint8_t {
        start,      // A host.
        wake,       // A machine wants to be told the time.
        begin,      // An opening, at the next look of a pool that polls.
        connect,    // A permit can be used.
        answer,     // Of the cluster, to an opening.
        age_out,    // The server closes a connection for its age.
        probe,      // A look at the idle connections.
        arrive,     // Work.
        again,      // Work that was refused.
        give_back,  // A lent connection.
        call,       // A request reaches the shared table,
        reply,      // and its answer the host.
        pause_end,  // Of a request for a permit.
        serve,      // A permit of a process's own may be there.
        no_slot,    // An opening has waited for one long enough.
        forgo,      // An opening gets no permit, or no lease.
        tend,       // Slots or leases want to be told the time.
        shed,       // The pools of a host hold more than it has slots for.
        reap,       // What dead processes hold.
        fault,
        fault_end,
        sample,
        explain,
    };

    enum class Outcome : std::uint8_t { opened, unreachable, unauthorized, full, too_fast, broken };

    struct What {
        Step step{};
        Outcome outcome{};
        std::uint32_t number = 0;  // Of a pool, a host or a fault.
        std::uint32_t life = 0;    // Of the host; what belongs to an earlier one is void.
        pool::ConnectionId connection{};
        std::uint64_t request = 0;
    };

    // By the machine's slot.
    struct Connection {
        std::uint64_t birth = 0;
        Time asked{};
        Time opened{};
        Time permit_by{};
        bool open = false;
        bool dead = false;  // The server has closed it; the machine has not noticed.
        bool lent = false;
        bool used = false;                              // Lent at least once.
        std::unique_ptr<pool::PermitRequest> permit{};  // While it is asked for.
    };

    struct Request {
        Time asked{};
        Time deadline{};
        int tries_left = 0;
    };

    struct Pool;

    // A connection that a pool wants.
    struct Opening {
        Pool* pool = nullptr;
        pool::ConnectionId connection{};
    };

    // Permits of a process's own, and the openings that stand in line for them.
    struct Bucket {
        Bucket(double per_second, int burst) : rate(per_second), tokens(per_second, burst) {}

        double rate;  // While the cluster does not refuse us.
        pool::TokenBucket tokens;
        std::unordered_map<std::uint64_t, Opening> line{};
        Time wake = Time::max();
    };

    // What one life of a host has of the limits that the fleet shares.
    struct Part {
        Part(Bucket whole, Bucket fair);

        pool::SlowDown pace{pool::FleetLimits{}};
        Bucket own;    // What it allows itself, once the cluster has refused it,
        Bucket share;  // and its share of what all may open.
        pool::Breaker breaker{pool::FleetLimits{}};
        pool::PermitMemory memory{};
        pool::ClockSkew clock{};

        std::unique_ptr<pool::SlotBlocks> blocks{};
        std::vector<pool::SlotId> slots{};         // One for each connection; any will do.
        std::deque<Opening> line{};                // Those without one.
        std::deque<pool::SlotAction> questions{};  // One after the other, as there is one keeper.
        bool asking = false;

        std::unique_ptr<pool::Leases> leases{};
        std::vector<pool::LeaseId> held{};
        std::unordered_map<std::uint64_t, Opening> wishes{};
        std::uint64_t wishes_made = 0;

        Time wake = Time::max();
        bool shed_planned = false;
        bool shed_told = false;  // Its pools; to be taken back when there is room again.
    };

    // A question to the shared table, on its way there and back.
    struct Call {
        Ask ask{};
        Owner owner{};
        Opening opening{};  // Of a permit.
        Wall sent{};        // By the clock of the host,
        Wall said{};        // and corrected.
        int tries = 0;
        bool throttled = false;  // The last try.
        std::optional<Reply> reply{};
    };

    struct Host {
        Host(const std::string& process, std::uint32_t index, std::uint64_t seed);

        const std::string& name;
        std::uint32_t number;
        std::uint32_t life = 0;
        std::vector<Pool*> pools{};
        bool cut_off = false;
        std::unique_ptr<Part> part{};  // Never null; another in each life.
        bool degraded = false;         // It cannot ask the shared table.
        Time skew{};                   // So far its clock is ahead.
        Random permits;
    };

    struct Pool {
        Pool(const Service& which, Host& process, std::uint32_t index, std::uint64_t seed);

        const Service& service;
        Host& host;
        std::uint32_t number;
        std::unique_ptr<pool::Machine> machine{};  // None while the host is down.
        std::vector<Connection> connections{};
        std::unordered_map<std::uint64_t, Request> requests{};  // Those that wait.
        int busy = 0;                                           // Requests that are not done.
        int target;
        int scaled_from = 0;  // What the target was before it began to change.
        int owned = 0;        // Open, and not dead.
        Time started{};
        int unnoticed = 0;  // Openings that begin at the next look.
        int permits_waiting = 0;
        int connecting = 0;
        int admitted = 0;  // Of those: let in, though the host does not know it yet.
        std::optional<Time> filled{};
        std::optional<Time> short_since{};
        Time wake = Time::max();
        Time look = Time::max();  // The next at the idle connections, if one is dead.
        std::size_t trace_at = 0;
        Counters counters{};
        Random holds;
        Random arrivals;
        Random network;
    };

    void handle(const What& what);
    void handle(Host& host, const What& what);
    void handle(Pool& pool, const What& what);
    void share_out(double per_second);
    [[nodiscard]] std::unique_ptr<Part> new_part() const;
    void at(Time when, Step step, const Host& host);
    void at(Time when, Step step, const Pool& pool, pool::ConnectionId connection = {});

    // Hosts, and the machines of their pools (fleet_pool.cpp).
    void start(Host& host);
    void stop(Host& host, bool in_order);
    [[nodiscard]] pool::Config config_of(const Service& service) const;
    [[nodiscard]] int share_of_ceiling(const Service& service) const;
    void tell(Pool& pool, const pool::Event& event);
    void carry_out(Pool& pool);
    void on(Pool& pool, const pool::Open& open);
    void on(Pool& pool, const pool::Close& close);
    void on(Pool& pool, const pool::Lend& lend);
    void on(Pool& pool, const pool::Refuse& refuse);
    void plan_wake(Pool& pool);
    [[nodiscard]] int wanted(const Pool& pool) const;
    void connect(Pool& pool, pool::ConnectionId connection);
    [[nodiscard]] Outcome knock(Pool& pool);
    [[nodiscard]] bool happens(double share);
    void answer(Pool& pool, const What& what);
    void lose(Pool& pool, Connection& connection);
    void age_out(Pool& pool, pool::ConnectionId id);
    void await_look(Pool& pool);
    void probe(Pool& pool);
    void note_owned(Pool& pool);
    void fail_opening(Pool& pool, pool::ConnectionId connection, Outcome why);

    // Permits, and the table they come from (fleet_permits.cpp).
    void seek_permit(Pool& pool, pool::ConnectionId connection);
    void ask_fleet(Pool& pool, pool::ConnectionId connection);
    void take_share(Pool& pool, pool::ConnectionId connection);
    void stand_in_line(Bucket& bucket, Pool& pool, pool::ConnectionId connection);
    void serve(Host& host);
    void serve(Host& host, Bucket& bucket);
    void pursue(Pool& pool, pool::ConnectionId connection, const pool::PermitStep& step);
    void use_permit(Pool& pool, pool::ConnectionId connection, Time when);
    void forgo(Pool& pool, pool::ConnectionId connection, Outcome why);
    void ask_table(Host& host, Ask ask, const Opening& opening);
    void reach_table(Host& host, const What& what);
    void hear_table(Host& host, const What& what);
    void hear_permit(const Opening& opening, const pool::PermitAnswer& answer);
    [[nodiscard]] Wall clock_of(const Host& host) const;
    [[nodiscard]] pool::Moment moment(const Host& host) const;
    [[nodiscard]] Time half_way(Host& host) const;
    void note_degraded(Host& host);

    // The right to exist (fleet_slots.cpp).
    void join(Host& host);
    void seek_slot(Pool& pool, pool::ConnectionId connection);
    void give_slot_back(Host& host);
    void tell_slots(Host& host, const pool::SlotEvent& event);
    void tell_leases(Host& host, const pool::LeaseEvent& event);
    void on_lease(Host& host, const pool::LeaseAction& action);
    void want_slots(Host& host);
    void tend(Host& host);
    void plan_tending(Host& host, Steady wanted);
    [[nodiscard]] int excess(const Part& part) const;
    void plan_shedding(Host& host);
    void shed(Host& host);
    void end_waiting(Pool& pool, pool::ConnectionId connection);

    // Work (fleet_work.cpp).
    void schedule_work(Pool& pool);
    void arrive(Pool& pool);
    [[nodiscard]] std::optional<Time> next_arrival(Pool& pool) const;
    [[nodiscard]] int arriving(Pool& pool) const;
    void ask(Pool& pool, Request request);
    void note_unserved(Pool& pool, const Request& request);
    void give_back(Pool& pool, pool::ConnectionId connection);

    // Faults (fleet_faults.cpp).
    void strike(std::uint32_t number);
    void relent(std::uint32_t number);
    void enforce();
    void drop(Pool& pool, const Fault& fault);
    void restart_next(std::uint32_t number);
    void start_again(Host& host, const Fault& fault);
    template <class T>
    void shuffle(std::vector<T>& all);
    void scale_next(std::uint32_t number);
    template <class Do>
    void each_pool(const Fault& fault, Do act);
    template <class Do>
    void each_host(const Fault& fault, Do act);

    // Observations (fleet_view.cpp).
    void sample();
    [[nodiscard]] std::vector<Sample> row(Time now) const;
    void note_ages();
    [[nodiscard]] static int without_slot(const Pool& pool);
    void explain();
    [[nodiscard]] bool traced(const Pool& pool) const;
    void trace(const Host& host, std::string_view what) const;
    // `say` is called only if the trace is on.
    template <std::invocable Say>
    void trace(const Pool& pool, Say say) const {
        if (traced(pool)) {
            watch_.trace(now(), say());
        }
    }

    [[nodiscard]] Time now() const noexcept { return events_.now(); }
    [[nodiscard]] Steady steady(Time time) const noexcept;

    const Scenario& scenario_;
    std::uint64_t seed_;
    const Watch& watch_;
    EventQueue<What> events_;
    Door door_;
    ReservationClock shared_;
    Table table_;
    pool::PermitConfig permits_;
    const pool::FleetLimits limits_{};
    std::vector<Call> calls_;
    std::vector<std::uint64_t> calls_free_;
    std::uint64_t leases_made_ = 0;
    int degraded_ = 0;  // Hosts that cannot reach the table,
    Time degraded_since_{};
    double share_ = 1;     // Of each process, in a second,
    int share_burst_ = 1;  // and at once.
    std::uint64_t waiters_made_ = 0;
    std::deque<Host> hosts_;
    std::deque<Pool> pools_;
    pool::Actions actions_;
    std::vector<pool::ConnectionId> probed_;
    std::uint64_t requests_made_ = 0;
    std::vector<std::size_t> progress_;      // By fault: how many steps it has made,
    std::vector<std::vector<Host*>> turns_;  // and whose turn it is to be restarted.
    Random chance_;                          // Of rejects, failures and random choices.

    // Faults that end by themselves, in the order in which they began, and their combined effect.
    std::vector<std::uint32_t> in_force_;
    bool unreachable_ = false;
    bool unauthorized_ = false;
    bool table_away_ = false;
    double rejects_ = 0;
    double slowness_ = 1;
    double load_ = 1;

    Result result_;
};

}  // namespace holdfast::sim
