#include <holdfast/base/http_client.hpp>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include <fmt/core.h>
#include <httplib.h>

#include <holdfast/base/error.hpp>

namespace holdfast {
namespace {

constexpr int url_port_max = 65'535;
constexpr std::chrono::milliseconds again_after{20};
constexpr std::chrono::seconds behind_hangup{1};  // The library's own limits, which never decide.

// The library's time-outs are for one read each: a slow server keeps it busy for ever. This closes
// the connection at the deadline, and when the caller stops.
class Hangup {
public:
    Hangup(httplib::ClientImpl& client, Deadline deadline, const std::stop_token& stop)
        : on_stop_(stop, [this] { wake(stopped_); }),
          thread_([this, &client, deadline] { watch(client, deadline); }) {}

    ~Hangup() {
        wake(done_);
        thread_.join();
    }
    Hangup(const Hangup&) = delete;
    Hangup& operator=(const Hangup&) = delete;

private:
    void wake(bool& flag) {
        const std::lock_guard lock(mutex_);
        flag = true;
        changed_.notify_all();
    }

    void watch(httplib::ClientImpl& client, Deadline deadline) {
        std::unique_lock lock(mutex_);
        changed_.wait_until(lock, deadline.when(), [this] { return done_ || stopped_; });
        while (!done_) {  // Before the connection stands there is nothing to hang up.
            client.stop();
            changed_.wait_for(lock, again_after, [this] { return done_; });
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    bool stopped_ = false;
    std::stop_callback<std::function<void()>> on_stop_;
    std::thread thread_;
};

std::unique_ptr<httplib::ClientImpl> make_client(const HttpUrl& url, const std::string& ca_file) {
    if (!url.tls) {
        return std::make_unique<httplib::ClientImpl>(url.host, url.port);
    }
    auto client = std::make_unique<httplib::SSLClient>(url.host, url.port);
    client->set_ca_cert_path(ca_file.empty() ? system_ca_file : ca_file);
    client->enable_server_certificate_verification(true);
    return client;
}

std::string_view why(httplib::Error error) {
    switch (error) {
        case httplib::Error::Connection:
            return "cannot be reached";
        case httplib::Error::SSLConnection:
        case httplib::Error::SSLLoadingCerts:
        case httplib::Error::SSLServerVerification:
            return "could not be verified (TLS)";
        case httplib::Error::Canceled:
            return "sent too large an answer";
        default:
            return "sent an incomplete answer";
    }
}

// Whether the request cannot have reached the server.
bool never_sent(httplib::Error error) {
    switch (error) {
        case httplib::Error::Connection:
        case httplib::Error::SSLConnection:
        case httplib::Error::SSLLoadingCerts:
        case httplib::Error::SSLServerVerification:
            return true;
        default:
            return false;
    }
}

HttpReply exchange(httplib::ClientImpl& client,
                   const HttpUrl& url,
                   const std::string& path,
                   const HttpRequest& request,
                   Deadline deadline,
                   const std::stop_token& stop) {
    const auto left = deadline.remaining();
    client.set_connection_timeout(left);
    client.set_read_timeout(left + behind_hangup);
    client.set_write_timeout(left + behind_hangup);
    client.set_decompress(false);
    client.set_follow_location(false);

    HttpReply reply;
    httplib::Request sent;
    sent.method = request.method;
    sent.path = path;
    sent.body = request.body;
    for (const auto& [name, value] : request.headers) {
        sent.headers.emplace(name, value);
    }
    sent.content_receiver = [&reply](const char* data, std::size_t size, auto, auto) {
        reply.body.append(data, size);
        return reply.body.size() <= reply_bytes_max;
    };
    const httplib::Result result = [&] {
        const Hangup hangup(client, deadline, stop);
        return client.send(sent);
    }();
    if (result) {
        reply.status = result->status;
        reply.date = result->get_header_value("Date");
        return reply;
    }
    const Outcome outcome = never_sent(result.error()) ? Outcome::not_applied : Outcome::unknown;
    if (stop.stop_requested()) {
        throw Error(Code::cancelled, outcome, "the request was stopped");
    }
    throw Error(Code::unavailable,
                outcome,
                fmt::format("{}:{} {}",
                            url.host,
                            url.port,
                            deadline.passed() ? "did not answer in time" : why(result.error())));
}

}  // namespace

HttpUrl parse_http_url(std::string_view url) {
    const auto refuse = [url] {
        return InvalidArgument(fmt::format("'{}' is not an address such as http://host:80/path",
                                           url.substr(0, url.find('?'))));
    };
    HttpUrl parsed;
    std::string_view rest = url;
    if (rest.starts_with("https://")) {
        parsed.tls = true;
        rest.remove_prefix(8);
    } else if (rest.starts_with("http://")) {
        rest.remove_prefix(7);
    } else {
        throw refuse();
    }
    const std::size_t slash = std::min(rest.find_first_of("/?"), rest.size());
    parsed.target = rest.substr(slash);
    if (!parsed.target.starts_with('/')) {
        parsed.target.insert(0, "/");
    }
    std::string_view authority = rest.substr(0, slash);
    std::string_view port = parsed.tls ? "443" : "80";
    const std::size_t bracket = authority.rfind(']');
    const std::size_t colon = authority.rfind(':');
    if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
        port = authority.substr(colon + 1);
        authority = authority.substr(0, colon);
    }
    if (authority.starts_with('[') && authority.ends_with(']')) {
        authority = authority.substr(1, authority.size() - 2);
    }
    parsed.host = authority;
    const auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), parsed.port);
    if (parsed.host.empty() || parsed.host.find('@') != std::string::npos || fault != std::errc{} ||
        end != port.data() + port.size() || parsed.port < 1 || parsed.port > url_port_max) {
        throw refuse();
    }
    return parsed;
}

struct HttpConnections::Idle {
    std::vector<std::unique_ptr<httplib::ClientImpl>> clients;
};

HttpConnections::HttpConnections(const std::string& url, std::string ca_file)
    : url_(parse_http_url(url)), ca_file_(std::move(ca_file)), idle_(std::make_unique<Idle>()) {}

HttpConnections::~HttpConnections() = default;

HttpReply HttpConnections::send(const HttpRequest& request,
                                Deadline deadline,
                                const std::stop_token& stop) {
    std::unique_ptr<httplib::ClientImpl> client;
    {
        const std::lock_guard lock(mutex_);
        if (!idle_->clients.empty()) {
            client = std::move(idle_->clients.back());
            idle_->clients.pop_back();
        }
    }
    if (!client) {
        client = make_client(url_, ca_file_);
        client->set_keep_alive(true);
        client->set_tcp_nodelay(true);
    }
    HttpReply reply = exchange(*client, url_, request.url, request, deadline, stop);
    const std::lock_guard lock(mutex_);
    if (idle_->clients.size() < idle_max) {
        idle_->clients.push_back(std::move(client));
    }
    return reply;
}

std::string HttpConnections::host() const {
    const int usual = url_.tls ? 443 : 80;
    const bool six = url_.host.find(':') != std::string::npos;
    const std::string name = six ? fmt::format("[{}]", url_.host) : url_.host;
    return url_.port == usual ? name : fmt::format("{}:{}", name, url_.port);
}

HttpReply http_send(const HttpRequest& request, Deadline deadline, const std::stop_token& stop) {
    const HttpUrl url = parse_http_url(request.url);
    const auto client = make_client(url, request.ca_file);
    return exchange(*client, url, url.target, request, deadline, stop);
}

}  // namespace holdfast
