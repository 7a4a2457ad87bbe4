// An HTTP server that answers as a test tells it: what a service would answer, or what it never
// should.
#pragma once

#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <httplib.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::test {

// Serves on a free port until destroyed. Handlers are added before start().
class LocalServer {
public:
    ~LocalServer() {
        server.stop();
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    httplib::Server server;

    void start() {
        port_ = server.bind_to_any_port("127.0.0.1");
        HOLDFAST_ASSERT(port_ > 0);
        std::promise<void> listening;  // A stop before that has no effect.
        server.new_task_queue = [&listening] {
            constexpr std::size_t workers = 16;  // A kept connection keeps its worker.
            auto queue = std::make_unique<httplib::ThreadPool>(workers);
            listening.set_value();
            return queue.release();
        };
        thread_ = std::thread([this] { server.listen_after_bind(); });
        listening.get_future().wait();
    }
    [[nodiscard]] std::string url(const std::string& path = "") const {
        return "http://127.0.0.1:" + std::to_string(port_) + path;
    }

private:
    int port_ = 0;
    std::thread thread_;
};

}  // namespace holdfast::test
