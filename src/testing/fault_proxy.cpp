#include <holdfast/testing/fault_proxy.hpp>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <list>
#include <mutex>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/unique_fd.hpp>
#include <holdfast/dsql/wire.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::test {

using dsql::Message;
using dsql::MessageStream;
using dsql::Opening;

namespace {

constexpr std::size_t most_waiting_bytes = 1U << 20U;  // Per way; then the sender has to wait.

[[nodiscard]] sockaddr_un socket_in(const std::filesystem::path& folder) {
    const std::string path = folder / ".s.PGSQL.5432";
    sockaddr_un address{};
    if (path.size() >= sizeof address.sun_path) {
        throw InvalidArgument("the path of the socket " + path + " is too long; set TMPDIR");
    }
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

[[nodiscard]] UniqueFd stream_socket(int flags) {
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
    if (!fd) {
        throw Error(Code::unavailable, Outcome::not_applied, "cannot open a socket");
    }
    return fd;
}

[[nodiscard]] UniqueFd listen_in(const std::filesystem::path& folder) {
    UniqueFd fd = stream_socket(SOCK_NONBLOCK);
    const sockaddr_un address = socket_in(folder);
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd.get(), SOMAXCONN) != 0) {
        throw Error(Code::unavailable, Outcome::not_applied, "cannot listen on a unix socket");
    }
    return fd;
}

// Asks the server for an answer to everything that was sent.
[[nodiscard]] bool is_sync(const Message& message) noexcept {
    return message.type == 'S' || message.type == 'Q' ||
           (message.type == '\0' && message.code != dsql::cancel_request);
}

// One direction of a connection.
struct Way {
    Side from;
    int source;
    int sink;
    MessageStream stream;
    std::string waiting{};  // To be written to the sink.
    std::string held{};     // A stalled message.

    // False at the end of the source.
    bool receive() {
        std::array<char, 65536> portion;
        const ssize_t size = ::recv(source, portion.data(), portion.size(), MSG_DONTWAIT);
        if (size < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        stream.append({portion.data(), static_cast<std::size_t>(size)});
        return size > 0;
    }

    // False if the sink takes nothing any more.
    bool deliver() {
        while (!waiting.empty()) {
            const ssize_t size =
                ::send(sink, waiting.data(), waiting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (size < 0) {
                return errno == EAGAIN || errno == EINTR;
            }
            waiting.erase(0, static_cast<std::size_t>(size));
        }
        return true;
    }
};

struct Link {
    Link(UniqueFd client_fd, UniqueFd server_fd)
        : client(std::move(client_fd)),
          server(std::move(server_fd)),
          up{Side::client, client.get(), server.get(), MessageStream(Opening::untyped)},
          down{Side::server, server.get(), client.get(), MessageStream(Opening::typed)} {}

    UniqueFd client;
    UniqueFd server;
    Way up;
    Way down;
    int owed = 0;  // Ready messages that the server has not sent yet.
    bool stalled = false;
    bool losing = false;    // The server's messages go nowhere.
    bool sync_due = false;  // While losing: the struck message's sync has not passed yet.
    bool closing = false;   // Closes when what waits has been written.
    bool closed = false;

    [[nodiscard]] bool reads(const Way& way) const noexcept {
        return !stalled && !closing && way.waiting.size() < most_waiting_bytes;
    }

    void shut() {
        ::shutdown(client.get(), SHUT_RDWR);
        ::shutdown(server.get(), SHUT_RDWR);
        closed = true;
    }
};

}  // namespace

// The thread that carries everything, and what the test wants of it.
class FaultProxy::Loop {
public:
    explicit Loop(const PostgresAddress& server)
        : server_(server),
          listener_(listen_in(folder_.path())),
          wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        address.socket_folder = folder_.path();
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }

    ~Loop() {
        thread_.request_stop();
        wake();
    }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    PostgresAddress address;
    mutable std::mutex mutex;
    mutable std::condition_variable struck;
    std::optional<Match> armed;
    Fault fault = Fault::cut;
    bool has_struck = false;
    bool refusing = false;
    std::list<Link> links;
    std::int64_t connections = 0;
    std::array<std::array<std::int64_t, 256>, 2> seen{};  // By side and type.

    void wake() const { (void)!::eventfd_write(wake_.get(), 1); }

private:
    void run(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            wait();
            const std::lock_guard lock(mutex);
            eventfd_t ignored = 0;
            (void)!::eventfd_read(wake_.get(), &ignored);
            welcome();
            for (Link& link : links) {
                serve(link);
            }
            links.remove_if([](const Link& link) { return link.closed; });
        }
    }

    // For anything to happen anywhere. Links are only added and removed by this thread.
    void wait() {
        std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
        {
            const std::lock_guard lock(mutex);
            for (const Link& link : links) {
                for (const Way* way : {&link.up, &link.down}) {
                    const Way* back = way == &link.up ? &link.down : &link.up;
                    const int events =
                        (link.reads(*way) ? POLLIN : 0) | (back->waiting.empty() ? 0 : POLLOUT);
                    // A descriptor that is asked for nothing would still report its end, for ever.
                    fds.push_back({events == 0 ? -1 : way->source, static_cast<short>(events), 0});
                }
            }
        }
        ::poll(fds.data(), fds.size(), -1);
    }

    void welcome() {
        UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!client) {
            return;
        }
        ++connections;
        if (refusing) {
            return;
        }
        UniqueFd server = stream_socket(0);
        const sockaddr_un target = socket_in(server_.socket_folder);
        if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&target), sizeof target) ==
            0) {
            links.emplace_back(std::move(client), std::move(server));
        }
    }

    void serve(Link& link) {
        try {
            for (Way* way : {&link.up, &link.down}) {
                if (!link.closed && link.reads(*way) && !way->receive()) {
                    link.closing = true;
                }
                pass_on(link, *way);
            }
        } catch (const Error&) {
            link.closing = true;
        }
        const bool delivered = link.up.deliver() && link.down.deliver();
        const bool finished = link.closing && link.up.waiting.empty() && link.down.waiting.empty();
        if (!link.closed && (!delivered || finished)) {
            link.shut();
        }
    }

    void pass_on(Link& link, Way& way) {
        while (!link.stalled && !link.closed) {
            const std::optional<Message> message = way.stream.next();
            if (!message) {
                return;
            }
            if (message->code == dsql::ssl_request || message->code == dsql::gss_request) {
                link.down.waiting += 'N';  // As the server would say: not here.
                continue;
            }
            account(link, way, *message);
            if (fits(way.from, *message)) {
                strike(link, way, *message);
                if (link.closing) {
                    return;
                }
            } else if (!(link.losing && way.from == Side::server)) {
                way.waiting += message->bytes;
            }
            if (link.losing && way.from == Side::server && message->type == 'Z' && link.owed == 0 &&
                !link.sync_due) {
                link.shut();
            }
        }
    }

    void account(Link& link, const Way& way, const Message& message) {
        ++seen[static_cast<std::size_t>(way.from)][static_cast<unsigned char>(message.type)];
        if (way.from == Side::client && is_sync(message)) {
            ++link.owed;
            link.sync_due = false;
        }
        if (way.from == Side::server && message.type == 'Z') {
            --link.owed;
        }
    }

    bool fits(Side from, const Message& message) {
        return armed && armed->from == from && message.type != '\0' &&
               (armed->type == '\0' || armed->type == message.type) &&
               message.body.find(armed->containing) != std::string_view::npos && --armed->nth <= 0;
    }

    void strike(Link& link, Way& way, const Message& message) {
        switch (fault) {
            case Fault::cut:
                link.closing = true;
                break;
            case Fault::cut_after:
                way.waiting += message.bytes;
                link.closing = true;
                break;
            case Fault::lose_answer:
                link.losing = true;
                if (way.from == Side::client) {
                    way.waiting += message.bytes;
                    link.sync_due = !is_sync(message);
                }
                break;
            case Fault::stall:
                link.stalled = true;
                way.held = message.bytes;
                break;
            case Fault::drop:
                break;
        }
        armed.reset();
        has_struck = true;
        struck.notify_all();
    }

    PostgresAddress server_;
    TempDir folder_;
    UniqueFd listener_;
    UniqueFd wake_;
    std::jthread thread_;
};

FaultProxy::FaultProxy(const PostgresAddress& server) : loop_(std::make_unique<Loop>(server)) {}
FaultProxy::~FaultProxy() = default;

const PostgresAddress& FaultProxy::address() const noexcept {
    return loop_->address;
}

void FaultProxy::arm(Match match, Fault fault) {
    const std::lock_guard lock(loop_->mutex);
    loop_->armed = std::move(match);
    loop_->fault = fault;
    loop_->has_struck = false;
}

void FaultProxy::disarm() {
    const std::lock_guard lock(loop_->mutex);
    loop_->armed.reset();
}

bool FaultProxy::wait_struck(Deadline deadline) const {
    std::unique_lock lock(loop_->mutex);
    return loop_->struck.wait_until(lock, deadline.when(), [&] { return loop_->has_struck; });
}

void FaultProxy::release() {
    const std::lock_guard lock(loop_->mutex);
    for (Link& link : loop_->links) {
        link.stalled = false;
        for (Way* way : {&link.up, &link.down}) {
            way->waiting += std::exchange(way->held, {});
        }
    }
    loop_->wake();
}

void FaultProxy::cut_all() {
    const std::lock_guard lock(loop_->mutex);
    for (Link& link : loop_->links) {
        link.shut();
    }
    loop_->wake();
}

void FaultProxy::refuse(bool refuse) {
    const std::lock_guard lock(loop_->mutex);
    loop_->refusing = refuse;
}

std::int64_t FaultProxy::connections() const {
    const std::lock_guard lock(loop_->mutex);
    return loop_->connections;
}

std::int64_t FaultProxy::messages(Side from, char type) const {
    const std::lock_guard lock(loop_->mutex);
    const auto& counts = loop_->seen[static_cast<std::size_t>(from)];
    if (type != '\0') {
        return counts[static_cast<unsigned char>(type)];
    }
    return std::accumulate(counts.begin() + 1, counts.end(), std::int64_t{0});
}

std::int64_t FaultProxy::round_trips() const {
    return messages(Side::client, 'S') + messages(Side::client, 'H') + messages(Side::client, 'Q');
}

}  // namespace holdfast::test
