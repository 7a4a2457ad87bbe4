// A private DynamoDB: the emulator that `./run` fetches into build/node.
#pragma once

#include <optional>
#include <string>

namespace holdfast::test {

// Serves on a port of its own, with its tables in memory, until destroyed. It dies with the
// process that started it.
class DynamoEmulator {
public:
    // Where the emulator is; empty if it was not fetched, and then tests skip themselves.
    [[nodiscard]] static std::optional<std::string> program();

    // Requires: program(). Returns when it answers. With a file its tables outlive a restart.
    explicit DynamoEmulator(std::string file = {});
    ~DynamoEmulator();
    DynamoEmulator(const DynamoEmulator&) = delete;
    DynamoEmulator& operator=(const DynamoEmulator&) = delete;

    [[nodiscard]] std::string url() const;

    void stop();   // Without notice to its clients.
    void start();  // On the same port.

private:
    const std::string file_;
    int port_ = 0;
    int pid_ = -1;
};

}  // namespace holdfast::test
