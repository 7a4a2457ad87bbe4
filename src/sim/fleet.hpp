// The pool that ships, many times over, under a simulated clock.
//
// Each process drives the production machine of the pool floor: what it asks to open takes a permit
// of the client's limiter, then knocks at the cluster's door, which has limits of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agenda.hpp"
#include "limits.hpp"
#include "model.hpp"
#include "table.hpp"

#include <holdfast/base/random.hpp>
#include <holdfast/pool/breaker.hpp>
#include <holdfast/pool/machine.hpp>

namespace holdfast::sim {

class Fleet {
public:
    Fleet(const Scenario& scenario, std::uint64_t seed, const Watch& watch);

    Result run();

private:
    enum class Step : std::uint8_t {
        start,      // A process.
        wake,       // Its machine wants to be told the time.
        connect,    // A permit can be used.
        answer,     // Of the cluster, to an opening.
        age_out,    // The server closes a connection for its age.
        probe,      // A look at the idle connections.
        arrive,     // Work.
        again,      // Work that was refused.
        give_back,  // A lent connection.
        call,       // A question reaches the shared table,
        reply,      // and its answer whoever asked.
        pause_end,  // Of a request for a permit.
        no_slot,    // An opening has waited for one long enough.
        forgo,      // An opening gets no permit, or no lease.
        tend,       // Slots or leases want to be told the time.
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
        std::uint32_t process = 0;  // Also the number of a fault.
        std::uint32_t life = 0;     // Of the process; what belongs to an earlier one is void.
        pool::ConnectionId connection{};
        std::uint64_t request = 0;
    };

    // By the machine's slot.
    struct Connection {
        std::uint64_t birth = 0;
        Time asked{};
        Time opened{};
        bool open = false;
        bool dead = false;  // The server has closed it; the machine has not noticed.
        bool lent = false;
        bool used = false;  // Lent at least once.
    };

    struct Request {
        Time asked{};
        Time deadline{};
        int tries_left = 0;
    };

    // What one life of a process has of the limits that the fleet shares.
    struct Part {
        Part();

        pool::Breaker breaker{pool::FleetLimits{}};
        pool::PermitMemory memory{};
        pool::ClockSkew clock{};
        std::unordered_map<std::uint32_t, std::unique_ptr<pool::PermitRequest>> requests{};

        std::unique_ptr<pool::SlotBlocks> blocks{};
        std::vector<pool::SlotId> slots{};         // One for each connection; any will do.
        std::deque<pool::ConnectionId> line{};     // Openings without one.
        std::deque<pool::SlotAction> questions{};  // One after the other, as there is one keeper.
        bool asking = false;

        std::unique_ptr<pool::Leases> leases{};
        std::vector<pool::LeaseId> held{};
        std::unordered_map<std::uint64_t, pool::ConnectionId> wishes{};

        Time wake = Time::max();
    };

    // A question to the shared table, on its way there and back.
    struct Call {
        Ask ask{};
        Owner owner{};
        pool::ConnectionId connection{};  // Of a permit.
        Wall sent{};                      // By the clock of the process,
        Wall said{};                      // and corrected.
        int tries = 0;
        std::optional<Reply> reply{};
    };

    struct Process {
        Process(const Service& which, std::uint32_t index, std::uint64_t seed);

        const Service& service;
        std::uint32_t number;
        std::unique_ptr<pool::Machine> machine{};  // None while it is down.
        std::uint32_t life = 0;
        std::vector<Connection> connections{};
        std::unordered_map<std::uint64_t, Request> requests{};  // Those that wait.
        int busy = 0;                                           // Requests that are not done.
        int target;
        int scaled_from = 0;  // What the target was before it began to change.
        int owned = 0;        // Open, and not dead.
        int permits_waiting = 0;
        int connecting = 0;
        int admitted = 0;  // Of those: let in, though the process does not know it yet.
        std::optional<Time> filled{};
        std::optional<Time> short_since{};
        Time wake = Time::max();
        bool cut_off = false;
        std::size_t trace_at = 0;
        ReservationClock bucket{1, 1};
        std::optional<Part> part{};  // Never empty; another in each life.
        bool degraded = false;       // It cannot ask the shared table.
        Time skew{};                 // So far its clock is ahead.
        Counters counters{};
        Random holds;
        Random arrivals;
        Random network;
        Random permits;
    };

    void handle(const What& what);
    void handle(Process& process, const What& what);
    void at(Time when, Step step, const Process& process, pool::ConnectionId connection = {});

    // Processes and their machines (fleet_process.cpp).
    void start(Process& process);
    void stop(Process& process, bool in_order);
    [[nodiscard]] pool::Config config_of(const Service& service) const;
    void tell(Process& process, const pool::Event& event);
    void carry_out(Process& process);
    void on(Process& process, const pool::Open& open);
    void on(Process& process, const pool::Close& close);
    void on(Process& process, const pool::Lend& lend);
    void on(Process& process, const pool::Refuse& refuse);
    void plan_wake(Process& process);
    void connect(Process& process, pool::ConnectionId connection);
    [[nodiscard]] Outcome knock(Process& process);
    [[nodiscard]] bool happens(double share);
    void answer(Process& process, const What& what);
    void lose(Process& process, Connection& connection);
    void probe(Process& process);
    void note_owned(Process& process);
    void fail_opening(Process& process, pool::ConnectionId connection, Outcome why);

    // Permits, and the table they come from (fleet_permits.cpp).
    void seek_permit(Process& process, pool::ConnectionId connection);
    void take_share(Process& process, pool::ConnectionId connection);
    void pursue(Process& process, pool::ConnectionId connection, const pool::PermitStep& step);
    void use_permit(Process& process, pool::ConnectionId connection, Time when);
    void forgo(Process& process, pool::ConnectionId connection, Outcome why);
    void ask_table(Process& process, Ask ask, pool::ConnectionId connection = {});
    void reach_table(Process& process, const What& what);
    void hear_table(Process& process, const What& what);
    void hear_permit(Process& process, const Call& call, const pool::PermitAnswer& answer);
    [[nodiscard]] Wall clock_of(const Process& process) const;
    [[nodiscard]] pool::Moment moment(const Process& process) const;
    [[nodiscard]] Time half_way(Process& process) const;
    void note_degraded(Process& process);

    // The right to exist (fleet_slots.cpp).
    void join(Process& process);
    void seek_slot(Process& process, pool::ConnectionId connection);
    void give_slot_back(Process& process);
    void tell_slots(Process& process, const pool::SlotEvent& event);
    void tell_leases(Process& process, const pool::LeaseEvent& event);
    void on_lease(Process& process, const pool::LeaseAction& action);
    void want_slots(Process& process);
    void tend(Process& process);
    void plan_tending(Process& process, Steady wanted);
    void end_waiting(Process& process, pool::ConnectionId connection);

    // Work (fleet_work.cpp).
    void schedule_work(Process& process);
    void arrive(Process& process);
    [[nodiscard]] std::optional<Time> next_arrival(Process& process) const;
    [[nodiscard]] int arriving(Process& process) const;
    void ask(Process& process, Request request);
    void give_back(Process& process, pool::ConnectionId connection);

    // What befalls them (fleet_faults.cpp).
    void strike(std::uint32_t number);
    void relent(std::uint32_t number);
    void drop(Process& process, const Fault& fault);
    void restart_next(std::uint32_t number);
    void scale_next(std::uint32_t number);
    template <class Do>
    void each(const Fault& fault, Do act);

    // What is seen of it (fleet_view.cpp).
    void sample();
    [[nodiscard]] std::vector<Sample> row(Time now) const;
    void note_ages();
    void explain();
    void trace(const Process& process, std::string_view what) const;

    [[nodiscard]] Time now() const noexcept { return agenda_.now(); }
    [[nodiscard]] Steady steady(Time time) const noexcept;

    const Scenario& scenario_;
    std::uint64_t seed_;
    const Watch& watch_;
    Agenda<What> agenda_;
    Door door_;
    ReservationClock shared_;
    Table table_;
    pool::PermitConfig permits_;
    const pool::FleetLimits limits_{};
    std::vector<Call> calls_;
    std::vector<std::uint64_t> calls_free_;
    std::uint64_t leases_made_ = 0;
    int degraded_ = 0;  // Processes that are on their own,
    Time degraded_since_{};
    std::deque<Process> processes_;
    pool::Actions actions_;
    std::vector<pool::ConnectionId> probed_;
    std::uint64_t requests_made_ = 0;
    std::vector<std::size_t> progress_;  // By fault: how many steps it has made.
    Random chance_;                      // Of rejects, failures and random choices.

    // Faults in force.
    bool unreachable_ = false;
    bool unauthorized_ = false;
    bool table_away_ = false;
    double rejects_ = 0;
    double slowness_ = 1;
    double load_ = 1;

    Result result_;
};

}  // namespace holdfast::sim
