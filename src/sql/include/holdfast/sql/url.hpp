// Database URLs.
//
//   sqlite:orders.db?create=1            a file, beside the working directory
//   sqlite::memory:                      a database that ends with its handle
//   postgres://user@host:5432/orders     a server; libpq's own parameters are allowed after `?`
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::sql {

struct Url {
    std::string scheme;  // "sqlite", "postgres", "dsql"
    std::string rest;    // What follows the scheme and its colon, without options.
    std::map<std::string, std::string, std::less<>> options;  // Percent-decoded.

    // Whether it names a file that this process opens, see Dialect::embedded.
    [[nodiscard]] bool embedded() const noexcept;
    // Without password, for messages.
    [[nodiscard]] std::string printable() const;
};

// Refuses what has no scheme, a bad percent escape, or an option twice.
[[nodiscard]] Url parse_url(std::string_view text);

// What ?reservoir=on or =off says: whether connections are opened before they are needed.
// Empty if it is not there; invalid_argument for any other word.
[[nodiscard]] std::optional<bool> reservoir_option(const Url& url);

}  // namespace holdfast::sql
