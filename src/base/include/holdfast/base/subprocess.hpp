// A program that we started, and what it prints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <holdfast/base/clock.hpp>

namespace holdfast {

struct SubprocessOptions {
    std::vector<std::string> arguments;    // The program first: a path, or a name to look up.
    std::vector<std::string> environment;  // "NAME=value", before what is inherited.
    bool with_errors = false;              // Read its standard error too; else it is ours.
};

// Killed, and waited for, by the destructor if it still runs. Not safe to share between threads,
// except kill().
class Subprocess {
public:
    // Unavailable if the program cannot be started.
    explicit Subprocess(SubprocessOptions options);
    ~Subprocess();
    Subprocess(const Subprocess&) = delete;
    Subprocess& operator=(const Subprocess&) = delete;

    // What it has printed next. Empty text once it has closed its output; none if the deadline
    // passes first.
    [[nodiscard]] std::optional<std::string> read(Deadline deadline);

    // kill -9. Requires: wait() has not been called.
    void kill() const noexcept;
    // True if it ended by itself with status 0. Once.
    bool wait() noexcept;

private:
    int pid_ = -1;
    int output_ = -1;
    bool waited_ = false;
};

}  // namespace holdfast
