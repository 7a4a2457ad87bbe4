// What is said on a call of several messages, apart from how it is transported.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::server::rpc {

// One stream's. Its transport calls it from one thread at a time, and hears the next message only
// when there is nothing to say.
class Conversation {
public:
    virtual ~Conversation() = default;

    // False if the message is not valid: that ends the call.
    [[nodiscard]] virtual bool heard(std::string_view message) = 0;

    // The next message to send; nothing if there is none now.
    [[nodiscard]] virtual std::optional<std::string> next() = 0;

    // Whether it waits for another message of the client.
    [[nodiscard]] virtual bool listens() const = 0;
};

}  // namespace holdfast::server::rpc
