#include <holdfast/dsql/gateway.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>

#include "gateway/clients.hpp"
#include "gateway/cluster.hpp"
#include "gateway/executor.hpp"
#include "gateway/wire/handshake.hpp"
#include "gateway/wire/wire_session.hpp"
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/unique_fd.hpp>
#include <holdfast/sql/error.hpp>

namespace holdfast::dsql {

namespace {

struct ContextFree {
    void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, ContextFree>;

[[noreturn]] void cannot(std::string what) {
    throw Error(Code::unavailable, Outcome::not_applied, std::move(what));
}

Context tls_context(const GatewayOptions& options) {
    Context context(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    SSL_CTX_set_mode(context.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_use_certificate_chain_file(context.get(), options.certificate.c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(
            context.get(), options.certificate_key.c_str(), SSL_FILETYPE_PEM) != 1) {
        cannot(fmt::format("the certificate {} and its key {} cannot be used: {}",
                           options.certificate.string(),
                           options.certificate_key.string(),
                           ERR_reason_error_string(ERR_get_error())));
    }
    return context;
}

UniqueFd listen_on(const std::string& host, int port) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    addrinfo* found = nullptr;
    if (::getaddrinfo(
            host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found) !=
        0) {
        cannot(fmt::format("'{}' is not an address to listen on; give an address of this machine",
                           host));
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, &::freeaddrinfo);
    UniqueFd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
        ::listen(fd.get(), SOMAXCONN) != 0) {
        cannot(fmt::format("cannot listen on {}:{}: {}; choose a free address of this machine",
                           host,
                           port,
                           std::system_category().message(errno)));
    }
    return fd;
}

int port_of(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.ss_family == AF_INET6
                     ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                     : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

// Most descriptors are for clients that have logged in, and for their connections below.
std::size_t strangers_max(const GatewayLimits& limits) {
    constexpr std::size_t share = 4;
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) {
        return limits.strangers;
    }
    return std::min(limits.strangers, static_cast<std::size_t>(files.rlim_cur) / share);
}

UniqueFd spare_descriptor() {
    return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

class Gateway::Listener {
public:
    explicit Listener(GatewayOptions options)
        : options_(std::move(options)),
          upstream_(options_.upstream),
          clock_(options_.clock != nullptr ? *options_.clock : system_clock()),
          context_((::signal(SIGPIPE, SIG_IGN), tls_context(options_))),
          early_abort_(options_.early_abort),
          clients_(
              strangers_max(options_.limits),
              options_.make_thread,
              [this](Client& client) { serve(client); },
              [this] { wake(); }),
          socket_(listen_on(options_.host, options_.port)),
          wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
          spare_(spare_descriptor()),
          port_(port_of(socket_.get())),
          thread_([this] { listen(); }) {}

    ~Listener() { stop(); }

    [[nodiscard]] int port() const noexcept { return port_; }

    [[nodiscard]] GatewayStats stats() {
        GatewayStats stats;
        stats.strangers = static_cast<std::int64_t>(clients_.strangers());
        const std::lock_guard lock(clusters_mutex_);
        for (const auto& [id, cluster] : clusters_) {
            stats.connections += cluster->counters.open;
            stats.opened += cluster->counters.opened;
            stats.commits += cluster->counters.commits;
            stats.conflicts += cluster->counters.conflicts;
            stats.detached += cluster->counters.detached;
            stats.replayed += cluster->counters.replayed;
            stats.exchanges += cluster->counters.exchanges;
        }
        return stats;
    }

    void arm(const FaultRule& rule) {
        const std::lock_guard lock(clusters_mutex_);
        rules_.push_back(rule);
        for (const auto& [id, cluster] : clusters_) {
            if (rule.cluster.empty() || rule.cluster == id) {
                cluster->arm(rule);
            }
        }
    }

    void disarm() {
        const std::lock_guard lock(clusters_mutex_);
        rules_.clear();
        for (const auto& [id, cluster] : clusters_) {
            cluster->disarm();
        }
    }

    void set_early_abort(bool early) { early_abort_ = early; }

    void hang_up(std::string_view cluster) { clients_.hang_up(cluster); }

    void stop() {
        if (stopped_.exchange(true)) {
            return;
        }
        wake();
        thread_.join();
        hang_up({});
        cut_off();
        clients_.join();
    }

private:
    using Client = Clients::Client;

    void wake() noexcept {
        const std::uint64_t one = 1;
        (void)!::write(wake_.get(), &one, sizeof one);
    }

    // A statement may run for long, and its client is gone.
    void cut_off() noexcept {
        const std::lock_guard lock(clusters_mutex_);
        for (const auto& [id, cluster] : clusters_) {
            try {
                cluster->cut_off();
            } catch (const std::exception& error) {
                log("the statements of a cluster cannot be ended", error.what());
            }
        }
    }

    void listen() {
        bool full = false;  // Only the end of a connection helps.
        while (!stopped_) {
            constexpr int look_again_ms = 100;
            std::array<pollfd, 2> entries{
                pollfd{wake_.get(), POLLIN, 0},
                pollfd{socket_.get(), static_cast<short>(full ? 0 : POLLIN), 0}};
            (void)::poll(entries.data(), entries.size(), full ? look_again_ms : -1);
            std::uint64_t count = 0;
            (void)!::read(wake_.get(), &count, sizeof count);
            clients_.reap();
            try {
                full = !stopped_ && !accept();
            } catch (const std::exception& error) {  // Out of memory: the next one may have more.
                log("a connection cannot be taken", error.what());
            }
        }
    }

    // False if a connection that waits must wait longer.
    bool accept() {
        if (!clients_.has_room()) {
            return false;
        }
        UniqueFd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd) {
            const int on = 1;
            ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            if (!clients_.take(std::move(fd))) {
                log("a connection was refused", "no thread can be made for it");
            }
            return true;
        }
        const bool starved =
            errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (!starved) {
            return true;
        }
        if (!clients_.dismiss_stranger()) {
            refuse_one();
        }
        return false;
    }

    // All descriptors are used by clients that have logged in: a new connection is closed at once.
    void refuse_one() {
        spare_ = UniqueFd();
        {
            const UniqueFd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        }
        spare_ = spare_descriptor();
        log("a connection was refused", "the process has no file descriptor left");
    }

    void serve(Client& client) noexcept {
        try {
            serve_in_turn(client);
        } catch (const std::exception& error) {  // Also from reporting another error.
            log("a connection has failed", error.what());
        }
    }

    void serve_in_turn(Client& client) {
        Channel channel(client.fd.get());
        channel.limit(Deadline::after(options_.limits.login_time));
        Tls tls;
        try {
            converse(client, channel, tls);
        } catch (const HangUp&) {  // NOLINT(bugprone-empty-catch): injected by a fault rule.
        } catch (const sql::DatabaseError& error) {
            if (!stopped_) {
                log("the server below has failed", error.what());
            }
            (void)channel.write(
                ErrorResponse{.code = "XX000", .message = error.what(), .fatal = true}.bytes());
        } catch (const Error& error) {
            const bool long_message = error.code() == Code::limit_exceeded;
            (void)channel.write(
                ErrorResponse{.code = "08P01",
                              .message = long_message ? "invalid message length" : error.what(),
                              .fatal = true}
                    .bytes());
        }
        if (tls) {
            SSL_shutdown(tls.get());
        }
    }

    void converse(Client& client, Channel& channel, Tls& tls) {
        MessageStream stream(Opening::untyped, options_.limits.startup_bytes);
        const auto startup = read_startup(channel, stream, client.fd.get(), context_.get(), tls);
        if (!startup) {
            return;
        }
        const auto say = [&channel](const ErrorResponse& response) {
            (void)channel.write(response.bytes());
        };
        if (!tls) {
            return say({.code = "08006",
                        .message = "unable to accept connection, TLS is required",
                        .fatal = true});
        }
        if (const auto response = objection_to(*startup)) {
            return say(*response);
        }
        // Nothing is sent to the server below before the token is verified.
        const auto identity = identify(options_, clock_.wall_now(), *startup, channel, stream);
        if (const auto* response = std::get_if<ErrorResponse>(&identity)) {
            return say(*response);
        }
        Cluster* cluster = find(startup->cluster_id());
        if (cluster == nullptr) {
            return say({.code = "08006",
                        .message = "unable to accept connection, access denied",
                        .hint = "There is no such cluster.",
                        .fatal = true});
        }
        clients_.know(client, cluster->id());
        if (const auto fault = cluster->fault_at(FaultPoint::connect)) {
            return say_fault(say, *fault);
        }
        if (const auto response = cluster->doorman().enter()) {
            return say(*response);
        }
        const std::shared_ptr<void> leaves(nullptr,
                                           [cluster](void*) { cluster->doorman().leave(); });
        if (const auto response = authorize(*cluster, *startup, std::get<std::string>(identity))) {
            return say(*response);
        }
        channel.limit(std::nullopt);
        stream.limit(options_.limits.message_bytes);
        talk(*cluster, *startup, channel, stream);
    }

    template <class Say>
    static void say_fault(const Say& say, GatewayFault fault) {
        switch (fault) {
            case GatewayFault::too_many:
                return say(ErrorResponse{
                    .code = "53300",
                    .message = "Unable to accept connection, too many open connections.",
                    .fatal = true});
            case GatewayFault::rate_exceeded:
                return say(ErrorResponse{.code = "53400",
                                         .message = "Unable to accept connection, rate exceeded.",
                                         .fatal = true});
            case GatewayFault::unavailable:
            case GatewayFault::unavailable_after:
                return say(
                    ErrorResponse{.code = "XX000", .message = "server unavailable", .fatal = true});
            default:
                throw HangUp{};
        }
    }

    void talk(Cluster& cluster, const Startup& startup, Channel& channel, MessageStream& stream) {
        auto backend = open_backend(cluster, startup);
        const std::string handshake = welcome(*backend, startup);
        const int pid = backend->pid();
        const auto executor = std::make_shared<Executor>(
            cluster, std::move(backend), startup.value("user"), early_abort_.load());
        cluster.enter(pid, executor);
        const std::shared_ptr<void> leaves(nullptr, [&cluster, pid](void*) {
            --cluster.counters.open;
            cluster.leave(pid);
        });
        ++cluster.counters.open;
        ++cluster.counters.opened;
        if (channel.write(handshake)) {
            WireSession(cluster, channel, stream, executor, startup.sets_rules()).run();
        }
    }

    // Null if there is no such database.
    Cluster* find(const std::string& id) {
        const std::lock_guard lock(clusters_mutex_);
        auto& cluster = clusters_[id];
        if (!cluster) {
            try {
                cluster =
                    std::make_unique<Cluster>(options_,
                                              upstream_,
                                              clock_,
                                              id,
                                              upstream_.names_a_database() ? std::string{} : id);
            } catch (const Error& error) {
                clusters_.erase(id);
                log("a cluster cannot be served", error.what());
                return nullptr;
            }
            for (const FaultRule& rule : rules_) {
                if (rule.cluster.empty() || rule.cluster == id) {
                    cluster->arm(rule);
                }
            }
        }
        return cluster.get();
    }

    void log(std::string_view what, std::string_view why) const {
        if (options_.logger != nullptr) {
            options_.logger->warn(what, {{"error", why}});
        }
    }

    GatewayOptions options_;
    const Upstream upstream_;
    const Clock& clock_;
    Context context_;
    std::atomic<bool> early_abort_;
    std::atomic<bool> stopped_ = false;

    std::mutex clusters_mutex_;
    std::map<std::string, std::unique_ptr<Cluster>> clusters_;
    std::vector<FaultRule> rules_;

    Clients clients_;

    UniqueFd socket_;
    UniqueFd wake_;
    UniqueFd spare_;  // Released to accept and close a connection when there is no other.
    int port_;
    std::thread thread_;
};

Gateway::Gateway(GatewayOptions options)
    : listener_(std::make_unique<Listener>(std::move(options))) {}

Gateway::~Gateway() = default;

int Gateway::port() const noexcept {
    return listener_->port();
}
GatewayStats Gateway::stats() const {
    return listener_->stats();
}
void Gateway::arm(const FaultRule& rule) {
    listener_->arm(rule);
}
void Gateway::disarm() {
    listener_->disarm();
}
void Gateway::hang_up(std::string_view cluster) {
    listener_->hang_up(cluster);
}
void Gateway::set_early_abort(bool early) {
    listener_->set_early_abort(early);
}
void Gateway::stop() {
    listener_->stop();
}

}  // namespace holdfast::dsql
