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

#include <holdfast/base/random.hpp>
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
        fault,
        fault_end,
        sample,
        explain,
    };

    enum class Outcome : std::uint8_t { opened, unreachable, unauthorized, full, too_fast };

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
        int owned = 0;  // Open, and not dead.
        int permits_waiting = 0;
        int connecting = 0;
        int admitted = 0;  // Of those: let in, though the process does not know it yet.
        std::optional<Time> filled{};
        std::optional<Time> short_since{};
        Time wake = Time::max();
        bool cut_off = false;
        std::size_t trace_at = 0;
        ReservationClock bucket{1, 1};
        Counters counters{};
        Random holds;
        Random arrivals;
        Random network;
    };

    void handle(const What& what);
    void at(Time when, Step step, const Process& process, pool::ConnectionId connection = {});

    // Processes and their machines (fleet_process.cpp).
    void start(Process& process);
    void stop(Process& process);
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
    void answer(Process& process, const What& what);
    void lose(Process& process, Connection& connection);
    void probe(Process& process);
    void note_owned(Process& process);

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
    template <class Do>
    void each(const Fault& fault, Do act);

    // What is seen of it (fleet_view.cpp).
    void sample();
    [[nodiscard]] std::vector<Sample> row(Time now) const;
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
    std::deque<Process> processes_;
    pool::Actions actions_;
    std::vector<pool::ConnectionId> probed_;
    std::uint64_t requests_made_ = 0;
    std::vector<std::size_t> restarted_;  // By fault: how many processes have been.
    Random chance_;                       // Of rejects, failures and random choices.

    // Faults in force.
    bool unreachable_ = false;
    bool unauthorized_ = false;
    double rejects_ = 0;
    double slowness_ = 1;
    double load_ = 1;

    Result result_;
};

}  // namespace holdfast::sim
