// Decompression with a bound on what comes out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::server::rpc {

// True if `bytes` begin as gzip does. No serialised message does: its first byte would be a tag of
// a wire type that does not exist.
[[nodiscard]] bool is_gzip(std::string_view bytes);

// Nothing if `bytes` are not one complete gzip stream. Stops after `bytes_max` + 1 bytes, which
// tell the caller that there are too many.
[[nodiscard]] std::optional<std::string> gunzip(std::string_view bytes, std::size_t bytes_max);

}  // namespace holdfast::server::rpc
