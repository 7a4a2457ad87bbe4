// The connections of a server: one thread moves all bytes, a few others call what answers. An
// answer may come later from anywhere: until then its request costs a connection.
//
// The loop never waits for one peer. A connection costs a descriptor, at most one buffered request
// and one answer, and it ends at its deadline. When the table is full, the oldest connection that
// waits for its peer makes room: a normal client needs one round trip, so slow ones cannot
// keep it out.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "http/http_message.hpp"
#include <poll.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/unique_fd.hpp>

namespace holdfast::http {

// What the loop serves. Both functions may be called from any thread and do not throw.
struct Service {
    // Looks at a request whose head is complete and whose body may not be; an answer ends it here.
    std::function<std::optional<HttpAnswer>(const Request&)> refusal;
    // Gets a complete request.
    std::function<void(const Request&, HttpRespond)> answer;
};

class Loop {
public:
    // Requires: `listener` listens and does not block.
    Loop(UniqueFd listener, Service service, const HttpLimits& limits, std::size_t workers);
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    // Closes every connection and returns when the threads have ended. May be repeated.
    void stop();
    // Closes at once what has not sent its request, and the rest when it has read its answer, or at
    // the deadline.
    void stop(Deadline drain);

private:
    using Id = std::uint64_t;  // Grows: the smallest id is the oldest connection.
    enum class Phase { reading, answering, writing, draining };

    struct Connection {
        UniqueFd socket;
        Deadline deadline;
        Phase phase = Phase::reading;
        RequestReader reader{};
        bool admitted = false;
        bool drain = false;    // The request was not read to its end.
        std::size_t held = 0;  // Of the bytes of all bodies.
        std::string out{};
        std::size_t sent = 0;
        std::size_t drained = 0;
    };
    using Connections = std::map<Id, Connection>;

    struct Job {
        Id id;
        Request request;
    };
    struct Done {
        Id id;
        std::string bytes;
    };
    // Where answers go. It may outlive the loop, which then wants no more of them.
    struct Answers {
        void put(Id id, std::string bytes);

        UniqueFd wake;
        std::mutex mutex;
        std::vector<Done> done{};  // One per connection at most.
    };
    class Responder;

    void run();
    void wait_for_events();
    [[nodiscard]] int milliseconds_to_wait(bool accepts);
    [[nodiscard]] bool can_accept() const;
    void accept_some();
    bool evict(bool only_writers);
    void serve(Connections::iterator connection, short events);
    void read(Connections::iterator connection);
    void admit(Connections::iterator connection);
    void send_continue(Connections::iterator connection);
    void begin_writing(Connections::iterator connection, std::string bytes);
    void write(Connections::iterator connection);
    void drain(Connections::iterator connection);
    Connections::iterator close(Connections::iterator connection);
    Connections::iterator give_up(Connections::iterator connection);
    void take_answers();
    void release_body(Connection& peer);
    void end_late_connections();
    // True if nothing is left to do for peers, or they had their time.
    [[nodiscard]] bool drained(Deadline drain);
    void work();

    UniqueFd listener_;
    Service service_;
    HttpLimits limits_;
    const std::shared_ptr<Answers> answers_;

    // Of the loop's thread alone.
    Connections connections_;
    Id next_id_ = 1;
    std::size_t answering_ = 0;
    std::size_t bytes_to_write_ = 0;
    std::size_t bytes_of_bodies_ = 0;
    bool accepting_ = true;
    std::optional<Deadline> no_accept_before_;
    std::vector<pollfd> polled_;
    std::vector<Id> polled_ids_;

    std::mutex mutex_;
    std::condition_variable job_came_;
    std::deque<Job> jobs_;           // One per connection at most.
    std::optional<Deadline> drain_;  // Set when it stops.
    bool stopping_ = false;          // For the threads that call what answers.

    std::once_flag stopped_;
    std::thread thread_;
    std::vector<std::thread> workers_;
};

}  // namespace holdfast::http
