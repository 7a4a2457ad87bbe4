// Answers what tools ask before they call: which services there are, and how their files read.
//
// One file per answer; tools ask for its imports by name. The descriptors are built when they are
// first asked for, and stay: some megabytes that a server at rest does not need.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rpc/conversation.hpp"

namespace holdfast::server::rpc {

// Safe to share between threads.
class Reflection {
public:
    // `methods` are full names, "/package.Service/Method". Only services that have one are listed.
    explicit Reflection(const std::vector<std::string>& methods);

    // The answer to one message of the stream. A failure is an answer too; bytes that are not a
    // request are answered with one.
    [[nodiscard]] std::string answer(std::string_view request) const;

    // A stream of requests, each answered. Requires: this object outlives it.
    [[nodiscard]] std::unique_ptr<Conversation> begin() const;

private:
    std::vector<std::string> services_;  // Sorted.
};

}  // namespace holdfast::server::rpc
