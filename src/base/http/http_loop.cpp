#include "http/http_loop.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::http {
namespace {

constexpr std::size_t read_bytes_max = 4096;  // At one event, so that all take turns.

// A connection that is closed with unread bytes takes the answer with it. So the loop reads on for
// a while what a refused client still sends.
constexpr std::size_t drain_bytes_max = std::size_t{256} * 1024;
constexpr std::chrono::seconds drain_max{2};

// How long accepting rests when the process has no descriptor left and the loop none to give.
constexpr std::chrono::milliseconds accept_pause{100};

constexpr std::chrono::hours idle_wait{1};

bool would_block() {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

void Loop::Answers::put(Id id, std::string bytes) {
    {
        const std::lock_guard lock(mutex);
        done.push_back({.id = id, .bytes = std::move(bytes)});
    }
    ::eventfd_write(wake.get(), 1);
}

// The one answer of a request, which is a failure if it is dropped without any.
class Loop::Responder {
public:
    Responder(std::shared_ptr<Answers> answers, Id id, bool head_only)
        : answers_(std::move(answers)), id_(id), head_only_(head_only) {}
    Responder(const Responder&) = delete;
    Responder& operator=(const Responder&) = delete;
    ~Responder() { answer({.status = 500, .body = "the request was dropped unanswered\n"}); }

    void answer(const HttpAnswer& answer) {
        if (!answered_.exchange(true)) {
            answers_->put(id_, to_bytes(answer, head_only_));
        }
    }

private:
    const std::shared_ptr<Answers> answers_;
    const Id id_;
    const bool head_only_;
    std::atomic<bool> answered_ = false;
};

Loop::Loop(UniqueFd listener, Service service, const HttpLimits& limits, std::size_t workers)
    : listener_(std::move(listener)),
      service_(std::move(service)),
      limits_(limits),
      answers_(std::make_shared<Answers>(UniqueFd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)))) {
    HOLDFAST_ASSERT(answers_->wake);
    HOLDFAST_ASSERT(limits_.connections > 0);
    workers_.reserve(workers);
    try {
        thread_ = std::thread([this] { run(); });
        for (std::size_t i = 0; i < workers; ++i) {
            workers_.emplace_back([this] { work(); });
        }
    } catch (...) {  // A thread could not be made: the others must end before the members do.
        stop();
        throw;
    }
}

Loop::~Loop() {
    stop();
}

void Loop::stop() {
    stop(Deadline::after(std::chrono::seconds{0}));
}

void Loop::stop(Deadline drain) {
    std::call_once(stopped_, [&] {
        {
            const std::lock_guard lock(mutex_);
            drain_ = drain;
        }
        ::eventfd_write(answers_->wake.get(), 1);
        if (thread_.joinable()) {
            thread_.join();
        }
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        job_came_.notify_all();
        for (std::thread& worker : workers_) {
            worker.join();
        }
    });
}

bool Loop::drained(Deadline drain) {
    if (std::exchange(accepting_, false)) {
        for (auto each = connections_.begin(); each != connections_.end();) {
            each = each->second.phase == Phase::reading ? close(each) : std::next(each);
        }
    }
    return connections_.empty() || drain.passed();
}

void Loop::run() {
    const auto done = [this] {
        std::unique_lock lock(mutex_);
        const std::optional<Deadline> drain = drain_;
        lock.unlock();
        return drain && drained(*drain);
    };
    while (!done()) {
        wait_for_events();
        take_answers();
        if (polled_[1].revents != 0) {
            accept_some();
        }
        for (std::size_t i = 0; i < polled_ids_.size(); ++i) {
            const short events = polled_[i + 2].revents;
            const auto connection = connections_.find(polled_ids_[i]);
            if (events != 0 && connection != connections_.end()) {
                serve(connection, events);
            }
        }
        end_late_connections();
    }
    connections_.clear();
    listener_ = UniqueFd{};
}

// Fills `polled_`: the wake-up, the listener, then the connections that wait for their peers.
void Loop::wait_for_events() {
    const bool accepts = can_accept();
    polled_.clear();
    polled_ids_.clear();
    polled_.push_back({.fd = answers_->wake.get(), .events = POLLIN, .revents = 0});
    polled_.push_back({.fd = accepts ? listener_.get() : -1, .events = POLLIN, .revents = 0});
    for (const auto& [id, connection] : connections_) {
        if (connection.phase == Phase::answering) {
            continue;
        }
        const short events = connection.phase == Phase::writing ? POLLOUT : POLLIN;
        polled_.push_back({.fd = connection.socket.get(), .events = events, .revents = 0});
        polled_ids_.push_back(id);
    }
    const int ready = ::poll(polled_.data(), polled_.size(), milliseconds_to_wait(accepts));
    if (ready < 0) {
        for (pollfd& each : polled_) {
            each.revents = 0;
        }
        if (errno != EINTR) {  // Too many for this process, or no memory for them.
            evict(false);
        }
    }
}

int Loop::milliseconds_to_wait(bool accepts) {
    Deadline next = Deadline::after(idle_wait);
    for (const auto& [id, connection] : connections_) {
        if (connection.phase != Phase::answering) {
            next = next.earlier(connection.deadline);
        }
    }
    if (!accepts && accepting_ && no_accept_before_) {
        next = next.earlier(*no_accept_before_);
    }
    {
        const std::lock_guard lock(mutex_);
        next = drain_ ? next.earlier(*drain_) : next;
    }
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(next.remaining()).count());
}

bool Loop::can_accept() const {
    return accepting_ && answering_ < limits_.connections &&
           (!no_accept_before_ || no_accept_before_->passed());
}

// At most a quarter of the table at a time: what has come in full is served before it could be
// evicted by a crowd.
void Loop::accept_some() {
    no_accept_before_.reset();
    const std::size_t count_max = std::max<std::size_t>(1, limits_.connections / 4);
    for (std::size_t i = 0; i < count_max && can_accept(); ++i) {
        UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!socket) {
            const bool out_of_descriptors =
                errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            if (out_of_descriptors && !evict(false)) {
                no_accept_before_ = Deadline::after(accept_pause);
            }
            if (!out_of_descriptors && errno != ECONNABORTED) {
                return;
            }
            continue;
        }
        if (connections_.size() >= limits_.connections) {
            const bool evicted = evict(false);
            HOLDFAST_ASSERT(evicted);  // Not all are being answered, see can_accept.
        }
        const int on = 1;
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        connections_.emplace(
            next_id_++,
            Connection{.socket = std::move(socket), .deadline = Deadline::after(limits_.request)});
    }
}

// Closes the oldest connection that waits for its peer. False if there is none.
bool Loop::evict(bool only_writers) {
    const auto oldest =
        std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
            const Phase phase = entry.second.phase;
            return only_writers ? phase == Phase::writing : phase != Phase::answering;
        });
    if (oldest == connections_.end()) {
        return false;
    }
    give_up(oldest);
    return true;
}

// A peer that does not read would keep what was sent in the kernel's memory: a reset frees it.
Loop::Connections::iterator Loop::give_up(Connections::iterator connection) {
    if (connection->second.phase == Phase::writing) {
        const linger at_once{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(
            connection->second.socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    return close(connection);
}

Loop::Connections::iterator Loop::close(Connections::iterator connection) {
    bytes_to_write_ -= connection->second.out.size();
    release_body(connection->second);
    return connections_.erase(connection);
}

void Loop::release_body(Connection& peer) {
    bytes_of_bodies_ -= std::exchange(peer.held, 0);
}

void Loop::serve(Connections::iterator connection, short events) {
    if ((events & POLLNVAL) != 0) {
        close(connection);
        return;
    }
    switch (connection->second.phase) {
        case Phase::reading:
            return read(connection);
        case Phase::writing:
            return write(connection);
        case Phase::draining:
            return drain(connection);
        case Phase::answering:
            return;
    }
}

void Loop::read(Connections::iterator connection) {
    Connection& peer = connection->second;
    std::array<char, read_bytes_max> buffer;
    const ssize_t got = ::recv(peer.socket.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) {
        if (got == 0 || !would_block()) {
            close(connection);
        }
        return;
    }
    peer.reader.take({buffer.data(), static_cast<std::size_t>(got)});
    switch (peer.reader.state()) {
        case RequestReader::State::head:
            return;
        case RequestReader::State::malformed:
            peer.drain = true;
            return begin_writing(connection, to_bytes(peer.reader.refusal(), false));
        case RequestReader::State::body:
        case RequestReader::State::complete:
            return admit(connection);
    }
}

// Asks the service once, before more of a body is read that would be refused anyway.
void Loop::admit(Connections::iterator connection) {
    Connection& peer = connection->second;
    const bool complete = peer.reader.state() == RequestReader::State::complete;
    if (!std::exchange(peer.admitted, true)) {
        const std::optional<HttpAnswer> refusal = service_.refusal(peer.reader.request());
        if (refusal) {
            peer.drain = !complete;
            const bool head_only = peer.reader.request().method == "HEAD";
            return begin_writing(connection, to_bytes(*refusal, head_only));
        }
        const std::size_t bytes = peer.reader.body_bytes();
        if (bytes > limits_.body_bytes) {
            peer.drain = true;
            const HttpAnswer answer{.status = 413, .body = "the body is too large\n"};
            return begin_writing(connection, to_bytes(answer, false));
        }
        if (bytes > limits_.bodies_bytes - bytes_of_bodies_) {
            peer.drain = !complete;
            const HttpAnswer answer{.status = 503, .body = "too much is sent at once\n"};
            return begin_writing(connection, to_bytes(answer, false));
        }
        peer.held = bytes;
        bytes_of_bodies_ += bytes;
        if (!complete && peer.reader.expects_continue()) {
            return send_continue(connection);
        }
    }
    if (!complete) {
        return;
    }
    peer.phase = Phase::answering;
    ++answering_;
    {
        const std::lock_guard lock(mutex_);
        jobs_.push_back({.id = connection->first, .request = peer.reader.take_request()});
    }
    job_came_.notify_one();
}

// These are the first bytes on the connection: they fit into its buffer.
void Loop::send_continue(Connections::iterator connection) {
    constexpr std::string_view text = "HTTP/1.1 100 Continue\r\n\r\n";
    const int socket = connection->second.socket.get();
    if (::send(socket, text.data(), text.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(text.size())) {
        close(connection);
    }
}

void Loop::begin_writing(Connections::iterator connection, std::string bytes) {
    while (bytes_to_write_ + bytes.size() > limits_.answer_bytes && evict(true)) {
    }
    Connection& peer = connection->second;
    release_body(peer);
    bytes_to_write_ += bytes.size();
    peer.out = std::move(bytes);
    peer.phase = Phase::writing;
    peer.deadline = Deadline::after(limits_.answer);
    write(connection);
}

void Loop::write(Connections::iterator connection) {
    Connection& peer = connection->second;
    const ssize_t sent = ::send(
        peer.socket.get(), peer.out.data() + peer.sent, peer.out.size() - peer.sent, MSG_NOSIGNAL);
    if (sent < 0) {
        if (!would_block()) {
            close(connection);
        }
        return;
    }
    peer.sent += static_cast<std::size_t>(sent);
    if (peer.sent < peer.out.size()) {
        return;
    }
    if (!peer.drain) {
        close(connection);
        return;
    }
    ::shutdown(peer.socket.get(), SHUT_WR);
    bytes_to_write_ -= std::exchange(peer.out, {}).size();
    peer.phase = Phase::draining;
    peer.deadline = Deadline::after(drain_max);
}

void Loop::drain(Connections::iterator connection) {
    Connection& peer = connection->second;
    std::array<char, read_bytes_max> buffer;
    const ssize_t got = ::recv(peer.socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && would_block()) {
        return;
    }
    peer.drained += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
    if (got <= 0 || peer.drained > drain_bytes_max) {
        close(connection);
    }
}

void Loop::take_answers() {
    if (polled_[0].revents == 0) {
        return;
    }
    eventfd_t count = 0;
    ::eventfd_read(answers_->wake.get(), &count);
    std::vector<Done> done;
    {
        const std::lock_guard lock(answers_->mutex);
        done.swap(answers_->done);
    }
    for (Done& each : done) {
        --answering_;
        const auto connection = connections_.find(each.id);
        HOLDFAST_ASSERT(connection != connections_.end());
        begin_writing(connection, std::move(each.bytes));
    }
}

void Loop::end_late_connections() {
    const Steady now = std::chrono::steady_clock::now();
    for (auto each = connections_.begin(); each != connections_.end();) {
        const bool late =
            each->second.phase != Phase::answering && each->second.deadline.passed(now);
        each = late ? give_up(each) : std::next(each);
    }
}

void Loop::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        job_came_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (stopping_) {
            return;
        }
        const Job job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        const auto responder =
            std::make_shared<Responder>(answers_, job.id, job.request.method == "HEAD");
        service_.answer(job.request,
                        [responder](const HttpAnswer& answer) { responder->answer(answer); });
        lock.lock();
    }
}

}  // namespace holdfast::http
