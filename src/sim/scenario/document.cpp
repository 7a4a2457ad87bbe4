#include "scenario/document.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::sim {
namespace {

// One step of a key's path: a name, or an index, which is empty for all.
struct Step {
    std::string name;
    bool index = false;
    std::optional<std::size_t> number;
};

[[noreturn]] void refuse_path(std::string_view key, const char* why) {
    throw InvalidArgument(fmt::format("the key '{}' {}", key, why));
}

Step parse_index(std::string_view key, std::string_view text) {
    Step step{.name = {}, .index = true, .number = {}};
    if (text == "*") {
        return step;
    }
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) {
        refuse_path(key, "has an index that is neither a number nor *");
    }
    step.number = number;
    return step;
}

std::vector<Step> parse_path(std::string_view key) {
    std::vector<Step> steps;
    std::string_view rest = key;
    while (!rest.empty()) {
        if (rest.front() == '[') {
            const auto end = rest.find(']');
            if (end == std::string_view::npos) {
                refuse_path(key, "has a [ without its ]");
            }
            steps.push_back(parse_index(key, rest.substr(1, end - 1)));
            rest.remove_prefix(end + 1);
        } else {
            const auto end = std::min(rest.find_first_of(".["), rest.size());
            steps.push_back(
                {.name = std::string(rest.substr(0, end)), .index = false, .number = {}});
            rest.remove_prefix(end);
        }
        if (rest.starts_with('.')) {
            rest.remove_prefix(1);
        }
    }
    if (steps.empty()) {
        refuse_path(key, "is empty");
    }
    return steps;
}

void set_below(Node& node,
               std::string_view key,
               const Node& value,
               const std::vector<Step>& path,
               std::size_t from) {
    if (from == path.size()) {
        if (node.kind == Node::Kind::list) {
            refuse_path(key, "is a list; name one of its entries");
        }
        node = value;
        return;
    }
    const Step& step = path[from];
    if (!step.index) {
        if (node.kind == Node::Kind::null) {
            node.kind = Node::Kind::map;
        }
        if (node.kind != Node::Kind::map) {
            refuse_path(key, "does not lead to a value");
        }
        return set_below(node.at(step.name), key, value, path, from + 1);
    }
    if (node.kind != Node::Kind::list || (step.number && *step.number >= node.items.size())) {
        refuse_path(key, "names an entry that is not there");
    }
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        if (!step.number || *step.number == i) {
            set_below(node.items[i], key, value, path, from + 1);
        }
    }
}

}  // namespace

void merge_below(Node& stronger, const Node& weaker) {
    if (stronger.kind == Node::Kind::null) {
        stronger = weaker;
        return;
    }
    if (stronger.kind != Node::Kind::map || weaker.kind != Node::Kind::map) {
        return;
    }
    for (const auto& [key, value] : weaker.fields) {
        Node* own = stronger.find(key);
        if (own == nullptr) {
            stronger.fields.emplace_back(key, value);
        } else {
            merge_below(*own, value);
        }
    }
}

void substitute(Node& node, const Node& variables, const std::string& path) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        substitute(node.items[i], variables, fmt::format("{}[{}]", path, i));
    }
    for (auto& [key, value] : node.fields) {
        substitute(value, variables, path.empty() ? key : fmt::format("{}.{}", path, key));
    }
    std::size_t begin = 0;
    while ((begin = node.scalar.find("${", begin)) != std::string::npos) {
        const std::size_t end = node.scalar.find('}', begin);
        const std::string name =
            end == std::string::npos ? "" : node.scalar.substr(begin + 2, end - begin - 2);
        const Node* value = variables.find(name);
        if (value == nullptr || value->kind != Node::Kind::scalar) {
            throw InvalidArgument(fmt::format(
                "{}: {}: {}",
                node.place,
                path,
                end == std::string::npos
                    ? "a ${ without its }"
                    : fmt::format("there is no variable '{}'; give it a value under vars", name)));
        }
        node.scalar.replace(begin, end + 1 - begin, value->scalar);
        begin += value->scalar.size();
    }
}

void set_value(Node& root,
               std::string_view key,
               const std::string& value,
               const std::string& place) {
    const Node leaf{.kind = Node::Kind::scalar, .scalar = value, .place = place};
    set_below(root, key, leaf, parse_path(key), 0);
}

}  // namespace holdfast::sim
