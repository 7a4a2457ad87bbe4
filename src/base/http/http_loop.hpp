// The connections of a server: one thread moves all bytes, a few others make the answers.
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
    // Looks at a request whose head is complete and whose body may not be; a reply ends it here.
    std::function<std::optional<Reply>(const Request&)> refusal;
    // Answers a complete request.
    std::function<Reply(const Request&)> answer;
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

private:
    using Id = std::uint64_t;  // Grows: the smallest id is the oldest connection.
    enum class Phase { reading, answering, writing, draining };

    struct Connection {
        UniqueFd socket;
        Deadline deadline;
        Phase phase = Phase::reading;
        RequestReader reader{};
        bool admitted = false;
        bool drain = false;  // The request was not read to its end.
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

    void run();
    void wait_for_events();
    [[nodiscard]] int milliseconds_to_wait(bool accepts) const;
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
    void end_late_connections();
    void work();

    UniqueFd listener_;
    Service service_;
    HttpLimits limits_;
    UniqueFd wake_;

    // Of the loop's thread alone.
    Connections connections_;
    Id next_id_ = 1;
    std::size_t answering_ = 0;
    std::size_t bytes_to_write_ = 0;
    std::optional<Deadline> no_accept_before_;
    std::vector<pollfd> polled_;
    std::vector<Id> polled_ids_;

    std::mutex mutex_;
    std::condition_variable job_came_;
    std::deque<Job> jobs_;    // One per connection at most.
    std::vector<Done> done_;  // One per connection at most.
    bool stopping_ = false;

    std::once_flag stopped_;
    std::thread thread_;
    std::vector<std::thread> workers_;
};

}  // namespace holdfast::http
