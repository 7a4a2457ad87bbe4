// A small world for tests of credentials: an environment, files, and a server that answers as told.
#pragma once

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <httplib.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::dsql::tests {

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
        std::promise<void> listening;  // A stop before that would be overheard.
        server.new_task_queue = [&listening] {
            constexpr std::size_t workers =
                16;  // Each is kept by a connection that may come again.
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

class CredentialStory : public testing::Test {
protected:
    CredentialStory() {
        // Nothing of the machine that runs the test may leak in.
        environment["HOME"] = (folder / "home").string();
        environment["AWS_EC2_METADATA_DISABLED"] = "true";
        options.variables = [this](const char* name) {
            const auto found = environment.find(name);
            return found == environment.end() ? std::nullopt
                                              : std::optional<std::string>(found->second);
        };
        options.attempt_pause = std::chrono::milliseconds{1};
    }

    [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
        const auto path = folder / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
        return path.string();
    }

    [[nodiscard]] Credentials get() const {
        return CredentialChain(options).get(Deadline::after(std::chrono::seconds{10}), {});
    }

    // What get() throws; empty if it throws nothing.
    [[nodiscard]] std::string refusal() const {
        try {
            return get().access_key_id.empty() ? "no keys and no error" : "";
        } catch (const Error& error) {
            return std::string(to_string(error.code())) + ": " + error.what();
        }
    }

    holdfast::test::TempDir folder;
    std::map<std::string, std::string> environment;
    CredentialOptions options;
};

}  // namespace holdfast::dsql::tests
