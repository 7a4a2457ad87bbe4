// What this server says that it can do. The one place: a capability is claimed when it is built.
//
// Clients trust these flags without asking again, so that a wrong one breaks workers silently.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace google::protobuf {
class Message;
}

namespace holdfast::server::frontend {

// What may be switched off.
struct Switches {
    bool eager_workflow_start = false;
};

struct Capability {
    std::string_view name;  // Of the field in the API's message.
    bool claimed = false;
    std::string_view because;
};

// Of GetSystemInfoResponse.Capabilities: all of them, also those that are not claimed.
[[nodiscard]] std::vector<Capability> system_capabilities(const Switches& switches);
// Of NamespaceInfo.Capabilities.
[[nodiscard]] std::vector<Capability> namespace_capabilities(const Switches& switches);

// Sets the fields of the claimed ones. Requires: the message has a boolean field of each name.
void claim(std::span<const Capability> capabilities, google::protobuf::Message& message);

}  // namespace holdfast::server::frontend
