// The user's program: in a process group of its own, with our standard input and output, and killed
// when we end.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include <holdfast/base/clock.hpp>

namespace holdfast::app {

using Variables = std::vector<std::pair<std::string, std::string>>;

// Made and destroyed on the same thread: the system kills the program when that thread ends. What
// the program itself has started is in its group, and is signalled with it, but outlives us if we
// are killed.
class Child {
public:
    // Requires: `command` is not empty; `variables` are added to our environment.
    // Throws CodedError, exit_no_program or exit_not_runnable, if it cannot be started.
    Child(const std::vector<std::string>& command, const Variables& variables);
    // Kills what is left of the group.
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // To the whole group.
    void signal(int number) noexcept;

    // Waits until the program has ended, wake is called, or `until`. True if it has ended.
    [[nodiscard]] bool wait(Steady until);
    // From any thread.
    void wake() noexcept;

    // Requires: wait has said that it ended. Reaps it, and then the group is left alone.
    // Its own code, or 128 plus the signal that killed it.
    [[nodiscard]] int exit_code();

private:
    pid_t pid_ = -1;
    int ended_ = -1;  // Readable when the program has ended.
    int wake_up_ = -1;
    bool foreground_ = false;  // It has our terminal.
};

}  // namespace holdfast::app
