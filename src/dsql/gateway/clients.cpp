#include "gateway/clients.hpp"

#include <algorithm>
#include <system_error>

#include "gateway/wire/error_response.hpp"
#include <sys/socket.h>

namespace holdfast::dsql {

namespace {

// Without waiting: the message is optional.
void say_full(int fd) {
    const std::string bytes =
        ErrorResponse{.code = "53300",
                      .message = "Unable to accept connection, too many open connections.",
                      .fatal = true}
            .bytes();
    (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Clients::Clients(std::size_t strangers_max,
                 GatewayOptions::ThreadMaker make_thread,
                 Serve serve,
                 std::function<void()> ended)
    : strangers_max_(std::max<std::size_t>(strangers_max, 1)),
      make_thread_(std::move(make_thread)),
      serve_(std::move(serve)),
      ended_(std::move(ended)) {}

bool Clients::has_room() {
    const std::lock_guard lock(mutex_);
    const auto leaving = std::count_if(clients_.begin(), clients_.end(), [](const Client& client) {
        return client.fd && client.leaving;
    });
    return static_cast<std::size_t>(leaving) < strangers_max_;
}

bool Clients::take(UniqueFd fd) {
    const std::lock_guard lock(mutex_);
    const auto staying = std::count_if(clients_.begin(), clients_.end(), [](const Client& client) {
        return client.fd && !client.known && !client.leaving;
    });
    if (static_cast<std::size_t>(staying) >= strangers_max_) {
        dismiss_oldest();
    }
    Client& client = clients_.emplace_back();
    client.fd = std::move(fd);
    try {
        client.thread = make_thread_ ? make_thread_([this, &client] { run(client); })
                                     : std::jthread([this, &client] { run(client); });
    } catch (const std::system_error&) {
        say_full(client.fd.get());
        clients_.pop_back();
        return false;
    }
    return true;
}

void Clients::run(Client& client) noexcept {
    serve_(client);
    {
        const std::lock_guard lock(mutex_);
        ::shutdown(client.fd.get(), SHUT_RDWR);
        client.fd = UniqueFd();
    }
    client.ended = true;
    ended_();
}

void Clients::know(Client& client, const std::string& cluster) {
    const std::lock_guard lock(mutex_);
    client.cluster = cluster;
    client.known = true;
}

std::size_t Clients::strangers() {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(clients_.begin(), clients_.end(), [](const Client& client) {
            return client.fd && !client.known;
        }));
}

bool Clients::dismiss_oldest() {
    const auto oldest = std::find_if(clients_.begin(), clients_.end(), [](const Client& client) {
        return client.fd && !client.known && !client.leaving;
    });
    if (oldest == clients_.end()) {
        return false;
    }
    oldest->leaving = true;
    ::shutdown(oldest->fd.get(), SHUT_RDWR);
    return true;
}

bool Clients::dismiss_stranger() {
    const std::lock_guard lock(mutex_);
    return dismiss_oldest() ||
           std::any_of(clients_.begin(), clients_.end(), [](const Client& client) {
               return client.fd && client.leaving;
           });
}

void Clients::reap() {
    std::list<Client> gone;
    const std::lock_guard lock(mutex_);
    for (auto client = clients_.begin(); client != clients_.end();) {
        const auto next = std::next(client);
        if (client->ended) {
            gone.splice(gone.end(), clients_, client);
        }
        client = next;
    }
}

void Clients::hang_up(std::string_view cluster) {
    const std::lock_guard lock(mutex_);
    for (const Client& client : clients_) {
        if (client.fd && (cluster.empty() || client.cluster == cluster)) {
            ::shutdown(client.fd.get(), SHUT_RDWR);
        }
    }
}

void Clients::join() {
    std::list<Client> left;
    {
        const std::lock_guard lock(mutex_);
        left.swap(clients_);
    }
    left.clear();  // Joins their threads.
}

}  // namespace holdfast::dsql
