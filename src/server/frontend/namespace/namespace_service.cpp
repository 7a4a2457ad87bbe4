#include "frontend/namespace/namespace_service.hpp"

#include <atomic>
#include <cstdint>

#include "frontend/namespace/blocking_call.hpp"
#include <fmt/format.h>

namespace holdfast::server::frontend {

std::string key_of_its_own() {
    static std::atomic<std::uint64_t> last{0};
    return fmt::format("call {}", ++last);
}

void add_namespace_service(rpc::Dispatch& dispatch,
                           const NamespaceServiceParts& parts,
                           const NamespaceServiceOptions& options) {
    add_system_calls(dispatch, parts, options);
    add_namespace_calls(dispatch, parts, options);
    add_search_attribute_calls(dispatch, parts);
    add_list_calls(dispatch, parts, options);
}

}  // namespace holdfast::server::frontend
