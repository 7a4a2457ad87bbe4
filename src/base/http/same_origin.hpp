// Keeps web pages of other sites away from a server that has no login.
//
// A browser on the same machine reaches a server on 127.0.0.1, and any page that it shows can make
// it send requests there. The browser says so in the headers Origin and Sec-Fetch-Site. A page
// whose own name was made to resolve to 127.0.0.1 (DNS rebinding) counts as the same site for the
// browser; its name is then in the header Host. Programs other than browsers pass.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "http/http_message.hpp"

namespace holdfast::http {

// Why the request is refused; nothing if it may pass. `own_hosts` are the names and
// addresses that the server goes by, "*" for all; other accepted hosts are `localhost` and IP
// addresses, since an address cannot be rebound.
[[nodiscard]] std::optional<std::string> cross_origin_refusal(
    const Request& request, std::span<const std::string> own_hosts);

}  // namespace holdfast::http
