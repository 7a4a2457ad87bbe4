#include "limits/own_database.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace holdfast::bench {

std::string url_of_database(const std::string& server, std::string_view database) {
    const std::size_t options = std::min(server.find('?'), server.size());
    const std::size_t host = server.find("//") + 2;
    const std::size_t path = std::min(server.find('/', host), options);
    return fmt::format("{}/{}{}", server.substr(0, path), database, server.substr(options));
}

}  // namespace holdfast::bench
