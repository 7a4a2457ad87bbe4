// Names of search attributes: the server's own, and those that users gave in a namespace.
//
// An attribute of a user is an alias of a column, such as Keyword01. Runs and events keep columns;
// requests and replies have aliases. A column is given out once, so that the values of a removed
// attribute do not come back under another name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <google/protobuf/map.h>
#include <temporal/api/enums/v1/common.pb.h>

namespace holdfast::server::namespaces::stored {
class Info;
}

namespace holdfast::server::search_attributes {

using Type = temporal::api::enums::v1::IndexedValueType;
using Info = namespaces::stored::Info;
using Aliases = google::protobuf::Map<std::string, std::string>;

// "Keyword", as in the metadata of a payload.
[[nodiscard]] std::string_view short_name(Type type);

enum class Origin : std::uint8_t {
    system,      // A property of every run.
    predefined,  // Set by the server.
    settable,    // Predefined, and clients may set it, too.
};

struct Known {
    std::string_view name;
    Type type{};
    Origin origin{};
};

// System and predefined attributes.
[[nodiscard]] std::span<const Known> known_attributes();
[[nodiscard]] const Known* find_known(std::string_view name);  // Null: there is none.
// Users cannot give this name.
[[nodiscard]] bool is_reserved(std::string_view name);

// Of a column that a user's attribute may have; nothing if it has not the form of one.
[[nodiscard]] std::optional<Type> column_type(std::string_view column);
// Of what is stored under this name: a column or a predefined attribute.
[[nodiscard]] std::optional<Type> stored_type(std::string_view name);

// Nothing if the namespace has no such attribute.
[[nodiscard]] std::optional<std::string> column_of(const Info& info, std::string_view alias);
[[nodiscard]] std::optional<std::string> alias_of(const Info& info, const std::string& column);

// Takes the next column of the type. False if there is an attribute of that name: it stays as it
// is. Requires: a type that has columns, and a name that is not reserved.
bool add(Info& info, const std::string& alias, Type type);
// What is not there is removed already.
bool remove(Info& info, const std::string& alias);
// Merges a map of aliases by column, where an empty alias removes one. Returns what is wrong with
// it; then nothing is changed.
[[nodiscard]] std::optional<std::string> merge(Info& info, const Aliases& aliases);

}  // namespace holdfast::server::search_attributes
