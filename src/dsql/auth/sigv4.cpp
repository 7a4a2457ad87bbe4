#include "auth/sigv4.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <span>

#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/hex.hpp>
#include <holdfast/base/percent.hpp>

namespace holdfast::dsql {
namespace {

std::string_view bytes_of(const Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// Empty unless all of `text` is digits.
std::optional<int> number(std::string_view text) {
    int value = 0;
    if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        return std::nullopt;
    }
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    return fault == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                    : std::nullopt;
}

std::string lower(std::string_view text) {
    std::string small(text);
    for (char& c : small) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return small;
}

// Without blanks around it, and with one for each run inside.
std::string folded(std::string_view value) {
    std::string text;
    bool blank = false;
    for (const char c : value) {
        if (c == ' ' || c == '\t') {
            blank = !text.empty();
            continue;
        }
        if (blank) {
            text += ' ';
        }
        blank = false;
        text += c;
    }
    return text;
}

}  // namespace

Digest sha256(std::string_view data) {
    Digest digest{};
    const int done =
        EVP_Digest(data.data(), data.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
    HOLDFAST_ASSERT(done == 1);
    return digest;
}

Digest hmac_sha256(std::string_view key, std::string_view data) {
    Digest digest{};
    const unsigned char* const done = HMAC(EVP_sha256(),
                                           key.data(),
                                           static_cast<int>(key.size()),
                                           reinterpret_cast<const unsigned char*>(data.data()),
                                           data.size(),
                                           digest.data(),
                                           nullptr);
    HOLDFAST_ASSERT(done != nullptr);
    return digest;
}

std::string hex(const Digest& digest) {
    return to_hex(std::as_bytes(std::span(digest)));
}

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string amz_date(Wall time) {
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss clock{std::chrono::floor<std::chrono::seconds>(time) - day};
    return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z",
                       static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()),
                       static_cast<unsigned>(date.day()),
                       clock.hours().count(),
                       clock.minutes().count(),
                       clock.seconds().count());
}

std::optional<Wall> parse_amz_date(std::string_view text) {
    if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z') {
        return std::nullopt;
    }
    const auto year = number(text.substr(0, 4));
    const auto month = number(text.substr(4, 2));
    const auto day = number(text.substr(6, 2));
    const auto hour = number(text.substr(9, 2));
    const auto minute = number(text.substr(11, 2));
    const auto second = number(text.substr(13, 2));
    if (!year || !month || !day || !hour || !minute || !second) {
        return std::nullopt;
    }
    const std::chrono::year_month_day date{std::chrono::year{*year},
                                           std::chrono::month{static_cast<unsigned>(*month)},
                                           std::chrono::day{static_cast<unsigned>(*day)}};
    if (!date.ok() || *hour > 23 || *minute > 59 || *second > 59) {
        return std::nullopt;
    }
    return std::chrono::sys_days{date} + std::chrono::hours{*hour} + std::chrono::minutes{*minute} +
           std::chrono::seconds{*second};
}

std::string canonical_query(const QueryParams& params) {
    QueryParams encoded;
    for (const auto& [name, value] : params) {
        encoded.emplace_back(percent_encoded(name), percent_encoded(value));
    }
    std::sort(encoded.begin(), encoded.end());
    std::string query;
    for (const auto& [name, value] : encoded) {
        query += fmt::format("{}{}={}", query.empty() ? "" : "&", name, value);
    }
    return query;
}

std::string Scope::text() const {
    return fmt::format("{}/{}/{}/aws4_request", day, region, service);
}

std::string canonical_get(std::string_view host, const QueryParams& params) {
    return fmt::format(
        "GET\n/\n{}\nhost:{}\n\nhost\n{}", canonical_query(params), host, hex(sha256("")));
}

CanonicalRequest canonical_request(std::string_view method,
                                   std::string_view path,
                                   std::string_view query,
                                   const SignableHeaders& headers,
                                   std::string_view body_hash) {
    constexpr std::array unsigned_headers{
        "authorization", "connection", "expect", "transfer-encoding", "user-agent"};
    std::map<std::string, std::string> sorted;
    for (const auto& [name, value] : headers) {
        std::string small = lower(name);
        if (std::find(unsigned_headers.begin(), unsigned_headers.end(), small) ==
            unsigned_headers.end()) {
            sorted[std::move(small)] = folded(value);
        }
    }
    CanonicalRequest request;
    std::string lines;
    for (const auto& [name, value] : sorted) {
        lines += fmt::format("{}:{}\n", name, value);
        request.signed_headers += (request.signed_headers.empty() ? "" : ";") + name;
    }
    request.text = fmt::format(
        "{}\n{}\n{}\n{}\n{}\n{}", method, path, query, lines, request.signed_headers, body_hash);
    return request;
}

std::string string_to_sign(std::string_view date,
                           const Scope& scope,
                           std::string_view canonical_request) {
    return fmt::format(
        "AWS4-HMAC-SHA256\n{}\n{}\n{}", date, scope.text(), hex(sha256(canonical_request)));
}

Digest signing_key(std::string_view secret, const Scope& scope) {
    const Digest day = hmac_sha256(fmt::format("AWS4{}", secret), scope.day);
    const Digest region = hmac_sha256(bytes_of(day), scope.region);
    const Digest service = hmac_sha256(bytes_of(region), scope.service);
    return hmac_sha256(bytes_of(service), "aws4_request");
}

std::string signature(std::string_view secret,
                      std::string_view date,
                      const Scope& scope,
                      std::string_view canonical_request) {
    const Digest key = signing_key(secret, scope);
    return hex(hmac_sha256(bytes_of(key), string_to_sign(date, scope, canonical_request)));
}

}  // namespace holdfast::dsql
