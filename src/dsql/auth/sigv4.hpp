// AWS Signature Version 4: the arithmetic, without a clock or a network.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/base/clock.hpp>

namespace holdfast::dsql {

using Digest = std::array<unsigned char, 32>;

[[nodiscard]] Digest sha256(std::string_view data);
[[nodiscard]] Digest hmac_sha256(std::string_view key, std::string_view data);
[[nodiscard]] std::string hex(const Digest& digest);

// In a time that does not depend on where they differ.
[[nodiscard]] bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept;

// "20260102T030405Z": whole seconds, cut off. Empty if the text is not exactly of that form.
[[nodiscard]] std::string amz_date(Wall time);
[[nodiscard]] std::optional<Wall> parse_amz_date(std::string_view text);

// Names and values as they are meant, not encoded.
using QueryParams = std::vector<std::pair<std::string, std::string>>;

// Encoded, sorted by encoded name, joined by `&`.
[[nodiscard]] std::string canonical_query(const QueryParams& params);

// Of what a signature is valid for: "20260102/us-east-1/dsql/aws4_request".
struct Scope {
    std::string day;  // yyyymmdd
    std::string region;
    std::string service;

    [[nodiscard]] std::string text() const;
};

// A GET of `/` without a body that signs nothing but its host: what a DSQL token is.
[[nodiscard]] std::string canonical_get(std::string_view host, const QueryParams& params);

// Names in any case; values as they are sent.
using SignableHeaders = std::vector<std::pair<std::string, std::string>>;

// What is signed of a request, and the names of the headers that are.
struct CanonicalRequest {
    std::string text;
    std::string signed_headers;
};
// Headers that proxies and the transport change are left out.
[[nodiscard]] CanonicalRequest canonical_request(std::string_view method,
                                                 std::string_view path,
                                                 std::string_view query,
                                                 const SignableHeaders& headers,
                                                 std::string_view body_hash);

[[nodiscard]] std::string string_to_sign(std::string_view date,
                                         const Scope& scope,
                                         std::string_view canonical_request);
[[nodiscard]] Digest signing_key(std::string_view secret, const Scope& scope);
// In hexadecimal.
[[nodiscard]] std::string signature(std::string_view secret,
                                    std::string_view date,
                                    const Scope& scope,
                                    std::string_view canonical_request);

}  // namespace holdfast::dsql
