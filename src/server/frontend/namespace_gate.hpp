// Which namespace a request names, and whether its state allows the request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "rpc/refusal.hpp"
#include <temporal/api/enums/v1/namespace.pb.h>

namespace holdfast::server::frontend {

struct ResolvedNamespace {
    std::string id;  // A UUID in text.
    std::string name;
    temporal::api::enums::v1::NamespaceState state{};
};

enum class NamespaceUse : std::uint8_t {
    start,     // Begins something new: REGISTERED only.
    ordinary,  // REGISTERED or DEPRECATED.
};

using NamespaceAnswer = std::variant<ResolvedNamespace, rpc::Refusal>;

// Safe to share between threads.
class NamespaceGate {
public:
    NamespaceGate() = default;
    NamespaceGate(const NamespaceGate&) = delete;
    NamespaceGate& operator=(const NamespaceGate&) = delete;
    virtual ~NamespaceGate() = default;

    // Neither blocks: every handler calls it on the thread of the transport. A name is checked with
    // name_refusal() first, the state with state_refusal(); an unknown namespace is
    // namespace_not_found().
    [[nodiscard]] virtual NamespaceAnswer resolve(const std::string& name, NamespaceUse use) = 0;
    // Of a task token.
    [[nodiscard]] virtual NamespaceAnswer by_id(const std::string& id, NamespaceUse use) = 0;
};

// What is wrong with a name, before it is looked up; nothing if it may exist.
[[nodiscard]] std::optional<rpc::Refusal> name_refusal(const std::string& name);

[[nodiscard]] rpc::Refusal namespace_not_found(const std::string& name);

[[nodiscard]] std::optional<rpc::Refusal> state_refusal(const ResolvedNamespace& found,
                                                        NamespaceUse use);

}  // namespace holdfast::server::frontend
