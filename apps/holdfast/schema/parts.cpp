#include "schema/parts.hpp"

#include <algorithm>

#include "demo/schema_part.hpp"
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/store/catalogue.hpp>

namespace holdfast::app {

lock::Names lock_names(const Config& config) {
    return {.locks = config.text("lock.locks_table"), .fences = config.text("lock.fences_table")};
}

Parts::Parts(const Config& config) : Parts(lock_names(config)) {}

Parts::Parts(const lock::Names& names)
    : lock_(names),
      parts_{
          flow::schema_part(),
          lock_.part(),
          demo_schema_part(),
          store::schema_part(),
      } {}

std::vector<std::string> part_names() {
    const Parts parts{lock::Names{}};
    std::vector<std::string> names;
    for (const sql::SchemaPart& part : parts.all()) {
        names.emplace_back(part.name);
    }
    return names;
}

const sql::SchemaPart& Parts::named(std::string_view name) const {
    // "lock:NAME" is a part of its own for each NAME.
    const auto short_name = [](const sql::SchemaPart& part) {
        return part.name.substr(0, part.name.find(':'));
    };
    const auto found = std::ranges::find_if(parts_, [&](const sql::SchemaPart& part) {
        return part.name == name || short_name(part) == name;
    });
    if (found != parts_.end()) {
        return *found;
    }
    std::vector<std::string_view> names;
    names.reserve(parts_.size());
    for (const sql::SchemaPart& part : parts_) {
        names.push_back(short_name(part));
    }
    throw InvalidArgument(
        fmt::format("there is no schema part '{}'; choose from {}", name, fmt::join(names, ", ")));
}

}  // namespace holdfast::app
