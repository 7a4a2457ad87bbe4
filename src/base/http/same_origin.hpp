// Keeps web pages of other sites away from a server that has no login.
//
// A browser on the same machine reaches a server on 127.0.0.1, and any page that it shows can make
// it send requests there. The browser says so in the headers Origin and Sec-Fetch-Site. A page
// whose own name was made to resolve to 127.0.0.1 (DNS rebinding) counts as the same site for the
// browser; its name is then in the header Host. Programs other than browsers pass.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/http_message.hpp"

namespace holdfast::http {

// Why the request is refused; nothing if it may pass. `own_host` is the name or address that the
// server was told to listen on; other accepted hosts are `localhost` and IP addresses, since an
// address cannot be rebound.
[[nodiscard]] std::optional<std::string> cross_origin_refusal(const Request& request,
                                                              std::string_view own_host);

}  // namespace holdfast::http
