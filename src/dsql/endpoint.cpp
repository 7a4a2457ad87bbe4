#include <holdfast/dsql/endpoint.hpp>

#include <algorithm>
#include <vector>

namespace holdfast::dsql {
namespace {

constexpr std::string_view blanks = " \t\r\n";

std::vector<std::string_view> labels_of(std::string_view name) {
    std::vector<std::string_view> labels;
    for (;;) {
        const std::size_t dot = name.find('.');
        labels.push_back(name.substr(0, dot));
        if (dot == std::string_view::npos) {
            return labels;
        }
        name.remove_prefix(dot + 1);
    }
}

bool is_region(std::string_view label) {
    return !label.empty() && std::all_of(label.begin(), label.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
}

}  // namespace

std::string normal_endpoint(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos) {
        return {};
    }
    text = text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
    std::string name(text.substr(0, text.find(':')));
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return name;
}

std::optional<std::string> region_of(std::string_view endpoint) {
    const std::vector<std::string_view> labels = labels_of(endpoint);
    constexpr std::size_t labels_after_id = 4;  // dsql, region, on, aws
    if (labels.size() < labels_after_id + 1) {
        return std::nullopt;
    }
    const auto last = labels.end() - labels_after_id;
    if (!last[0].starts_with("dsql") || !is_region(last[1]) || last[2] != "on" ||
        last[3] != "aws") {
        return std::nullopt;
    }
    return std::string(last[1]);
}

std::string cluster_id_of(std::string_view endpoint) {
    return std::string(endpoint.substr(0, endpoint.find('.')));
}

}  // namespace holdfast::dsql
