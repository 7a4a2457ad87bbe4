#include "postgres/resolver.hpp"

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <holdfast/sql/error.hpp>

namespace holdfast::sql::postgres {
namespace {

constexpr std::string_view unresolved_cure =
    "check that the server runs and that the database URL names it";

struct FreeAddresses {
    void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

AddressList ask(const std::string& host, int flags, int& fault) {
    addrinfo hints{};
    hints.ai_flags = flags;
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    fault = getaddrinfo(host.c_str(), nullptr, &hints, &list);
    return AddressList(fault == 0 ? list : nullptr);
}

// A socket in the file system, or an address already: libpq needs no help with it.
bool is_plain(const std::string& host) {
    if (host.empty() || host.front() == '/' || host.front() == '@') {
        return true;
    }
    int fault = 0;
    (void)ask(host, AI_NUMERICHOST, fault);
    return fault == 0;
}

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> parts{""};
    for (const char c : list) {
        if (c == ',') {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

void append(std::string& list, const std::string& part, bool first) {
    list += first ? "" : ",";
    list += part;
}

}  // namespace

Addresses look_up(const std::string& host) {
    int fault = 0;
    const AddressList list = ask(host, 0, fault);
    Addresses found;
    for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
        std::array<char, NI_MAXHOST> text{};
        if (getnameinfo(each->ai_addr,
                        each->ai_addrlen,
                        text.data(),
                        text.size(),
                        nullptr,
                        0,
                        NI_NUMERICHOST) == 0) {
            found.numeric.emplace_back(text.data());
        }
    }
    if (found.numeric.empty()) {
        found.error = fault == 0 ? "it has no address" : gai_strerror(fault);
    }
    return found;
}

struct Resolver::Flight {
    std::mutex mutex;
    std::condition_variable_any landed;
    std::optional<Addresses> found;
};

struct Resolver::Flights {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Flight>> by_host;
};

Resolver::Resolver(std::function<Addresses(const std::string&)> look)
    : look_(std::move(look)), flights_(std::make_shared<Flights>()) {}

// The thread shares ownership of all that it uses: it may outlive us.
std::shared_ptr<Resolver::Flight> Resolver::join_flight(const std::string& host) {
    const std::lock_guard lock(flights_->mutex);
    auto& flight = flights_->by_host[host];
    if (flight) {
        return flight;
    }
    flight = std::make_shared<Flight>();
    try {
        std::thread([flight = flight, flights = flights_, look = look_, host] {
            Addresses found;
            try {
                found = look(host);
            } catch (const std::exception& error) {
                found.error = error.what();
            }
            {
                const std::lock_guard leave(flights->mutex);
                flights->by_host.erase(host);
            }
            const std::lock_guard land(flight->mutex);
            flight->found = std::move(found);
            flight->landed.notify_all();
        }).detach();
    } catch (const std::system_error&) {
        flights_->by_host.erase(host);
        throw ConnectionLost(Outcome::not_applied,
                             "the process has no thread left for asking for the server's address, "
                             "at stage resolve; raise its limit (ulimit -u)");
    }
    return flight;
}

Addresses Resolver::addresses_of(const std::string& host,
                                 Deadline deadline,
                                 const std::stop_token& stop) {
    const std::shared_ptr<Flight> flight = join_flight(host);
    std::unique_lock lock(flight->mutex);
    if (!flight->landed.wait_until(
            lock, stop, deadline.when(), [&] { return flight->found.has_value(); })) {
        throw ConnectionLost(
            Outcome::not_applied,
            fmt::format("opening a connection {} at stage resolve; check that the name server "
                        "answers for \"{}\"",
                        stop.stop_requested() ? "was stopped" : "took too long",
                        host));
    }
    return *flight->found;
}

ConnectParams Resolver::resolve(ConnectParams params,
                                Deadline deadline,
                                const std::stop_token& stop) {
    const auto given = params.find("hostaddr");
    const auto named = params.find("host");
    if ((given != params.end() && !given->second.empty()) || named == params.end()) {
        return params;
    }
    const std::vector<std::string> hosts = split(named->second);
    const auto told = params.find("port");
    const std::vector<std::string> ports = split(told == params.end() ? "" : told->second);
    if (ports.size() > 1 && ports.size() != hosts.size()) {
        return params;  // libpq reports the error.
    }
    std::string host;
    std::string hostaddr;
    std::string port;
    std::string error;
    bool resolved = false;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        Addresses found{.numeric = {""}, .error = {}};
        if (!is_plain(hosts[i])) {
            found = addresses_of(hosts[i], deadline, stop);
            resolved = true;
        }
        if (found.numeric.empty() && error.empty()) {
            error = fmt::format(
                "could not translate host name \"{}\" to address: {}", hosts[i], found.error);
        }
        for (const std::string& address : found.numeric) {
            append(hostaddr, address, host.empty());
            append(port, ports[ports.size() > 1 ? i : 0], host.empty());
            append(host, hosts[i], host.empty());
        }
    }
    if (host.empty() && resolved) {
        throw ConnectionLost(Outcome::not_applied,
                             fmt::format("{}, at stage resolve; {}", error, unresolved_cure));
    }
    if (resolved) {
        params["host"] = host;
        params["hostaddr"] = hostaddr;
        if (ports.size() > 1) {
            params["port"] = port;
        }
    }
    return params;
}

}  // namespace holdfast::sql::postgres
