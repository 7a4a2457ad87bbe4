// A small world for tests of DynamoDB: the emulator, and a server before it that does harm.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "auth/test/credentials_fixture.hpp"
#include "fleet/dynamodb.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/dynamodb.hpp>

namespace holdfast::dsql::tests {

// Passes requests on, unless told to do something else with the next ones.
class FaultServer {
public:
    enum class Fault { none, throttled, conflict, failed, lost_answer, lost_request, said };

    explicit FaultServer(std::string target) : target_(std::move(target)) {
        local_.server.Post(
            "/", [this](const auto& request, auto& response) { serve(request, response); });
        local_.start();
    }

    [[nodiscard]] std::string url() const { return local_.url(); }

    void next(Fault fault, int times = 1) {
        const std::lock_guard lock(mutex_);
        faults_.insert(faults_.end(), static_cast<std::size_t>(times), fault);
    }
    // The next answer, word for word.
    void say(int status, std::string body) {
        const std::lock_guard lock(mutex_);
        faults_.push_back(Fault::said);
        words_.emplace_back(status, std::move(body));
    }
    // The next `n` requests wait for each other. Whether they came together.
    [[nodiscard]] bool gather(int n) {
        std::unique_lock lock(mutex_);
        gathering_ = n;
        return together_.wait_for(lock, std::chrono::seconds{30}, [&] { return gathering_ == 0; });
    }
    // So many of the next requests are not passed on.
    [[nodiscard]] std::size_t left() const {
        const std::lock_guard lock(mutex_);
        return faults_.size();
    }
    [[nodiscard]] int requests() const {
        const std::lock_guard lock(mutex_);
        return requests_;
    }
    // How the latest request was signed.
    [[nodiscard]] std::string signature() const {
        const std::lock_guard lock(mutex_);
        return signature_;
    }

private:
    Fault take(const httplib::Request& request) {
        std::unique_lock lock(mutex_);
        ++requests_;
        signature_ = request.get_header_value("Authorization");
        if (gathering_ > 0) {
            --gathering_;
            together_.notify_all();
            together_.wait_for(lock, std::chrono::seconds{30}, [&] { return gathering_ == 0; });
        }
        if (faults_.empty()) {
            return Fault::none;
        }
        const Fault fault = faults_.front();
        faults_.pop_front();
        return fault;
    }

    void say_words(httplib::Response& response) {
        const std::lock_guard lock(mutex_);
        response.status = words_.front().first;
        response.set_content(words_.front().second, "application/x-amz-json-1.0");
        words_.pop_front();
    }

    void serve(const httplib::Request& request, httplib::Response& response) {
        const auto refuse = [&](int status, const std::string& name) {
            response.status = status;
            response.set_content(R"({"__type":"com.amazonaws.dynamodb.v20120810#)" + name +
                                     R"(","message":"as the test wishes"})",
                                 "application/x-amz-json-1.0");
        };
        const auto hang_up = [&] {
            response.set_content_provider(
                10, "application/x-amz-json-1.0", [](auto, auto, auto&) { return false; });
        };
        switch (take(request)) {
            case Fault::throttled:
                return refuse(400, "ProvisionedThroughputExceededException");
            case Fault::conflict:
                return refuse(400, "TransactionConflictException");
            case Fault::failed:
                return refuse(500, "InternalServerError");
            case Fault::lost_request:
                return hang_up();
            case Fault::lost_answer:
                (void)pass_on(request);
                return hang_up();
            case Fault::said:
                return say_words(response);
            case Fault::none:
                break;
        }
        const HttpReply reply = pass_on(request);
        response.status = reply.status;
        response.set_header("Date", reply.date);
        response.set_content(reply.body, "application/x-amz-json-1.0");
    }

    [[nodiscard]] HttpReply pass_on(const httplib::Request& request) const {
        HttpRequest passed{.method = "POST", .url = target_, .body = request.body};
        for (const char* name : {"X-Amz-Target", "Content-Type", "Authorization", "X-Amz-Date"}) {
            passed.headers.emplace_back(name, request.get_header_value(name));
        }
        return http_send(passed, Deadline::after(std::chrono::seconds{10}), {});
    }

    const std::string target_;
    mutable std::mutex mutex_;
    std::deque<Fault> faults_;
    std::deque<std::pair<int, std::string>> words_;
    int requests_ = 0;
    std::string signature_;
    int gathering_ = 0;
    std::condition_variable together_;
    LocalServer local_;
};

// Skips itself where the emulator was not fetched.
class DynamoStory : public testing::Test {
protected:
    using Fault = FaultServer::Fault;

    void SetUp() override {
        if (!holdfast::test::DynamoEmulator::program()) {
            GTEST_SKIP() << "the emulator of DynamoDB is not there; ./run test fetches it";
        }
        emulator = std::make_unique<holdfast::test::DynamoEmulator>();
        faults = std::make_unique<FaultServer>(emulator->url());
        client = std::make_unique<DynamoClient>(options(faults->url()));
        ASSERT_TRUE(client->create_table(table, soon(), {}));
    }

    [[nodiscard]] static DynamoOptions options(const std::string& url) {
        return {
            .region = "us-east-1",
            .endpoint = url,
            .credentials = fixed_credentials(
                {.access_key_id = "AKIDEXAMPLE", .secret_access_key = "fake", .session_token = {}}),
            .call_timeout = std::chrono::seconds{10},
            .retry_pause = std::chrono::milliseconds{1}};
    }

    [[nodiscard]] static Deadline soon() { return Deadline::after(std::chrono::seconds{20}); }

    const std::string table = "fleet";
    std::unique_ptr<holdfast::test::DynamoEmulator> emulator;
    std::unique_ptr<FaultServer> faults;
    std::unique_ptr<DynamoClient> client;
};

}  // namespace holdfast::dsql::tests
