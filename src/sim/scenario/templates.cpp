#include "scenario/templates.hpp"

#include <filesystem>
#include <sstream>

#include "fleet/latency.hpp"
#include "scenario/fields.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast::sim {
namespace {

constexpr int include_depth_max = 8;

// The text of a file that the document names at `at`, beside the document itself.
std::string read_named(const Node& at,
                       const std::string& key,
                       const std::string& path,
                       const ReadFile& read) {
    try {
        return read(path);
    } catch (const Error& error) {
        throw InvalidArgument(fmt::format("{}: {}: {}", at.place, key, error.what()));
    }
}

void include_below(Node& root, const std::string& name, const ReadFile& read, int depth) {
    const Node include = root.take("include");
    if (include.kind == Node::Kind::null) {
        return;
    }
    if (!read || depth > include_depth_max) {
        throw InvalidArgument(fmt::format(
            "{}: include: {}",
            include.place,
            read ? "files include each other too deeply" : "nothing can be included here"));
    }
    const std::vector<Node> one{include};
    for (const Node& file : include.kind == Node::Kind::list ? include.items : one) {
        if (file.kind != Node::Kind::scalar) {
            throw InvalidArgument(fmt::format("{}: include: expected a file name", file.place));
        }
        const std::string path = (std::filesystem::path(name).parent_path() / file.scalar).string();
        Node included = parse_document(path, read_named(file, "include", path, read));
        (void)Fields(included, path, {});  // Refused, unless it holds keys.
        include_below(included, path, read, depth + 1);
        merge_below(root, included);
    }
}

// Lines of a moment and a count, as in "12s,3"; what begins with # is for people.
Node trace_of(const std::string& path, const std::string& text) {
    Node trace{.kind = Node::Kind::list};
    std::istringstream lines(text);
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
        std::erase_if(line, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
        if (line.empty() || line.starts_with('#')) {
            continue;
        }
        const std::string place = fmt::format("{}:{}", path, number);
        const auto comma = line.find(',');
        const auto scalar = [&](std::string value) {
            return Node{.kind = Node::Kind::scalar, .scalar = std::move(value), .place = place};
        };
        Node& arrival = trace.items.emplace_back(Node{.kind = Node::Kind::map, .place = place});
        arrival.fields.emplace_back("at", scalar(line.substr(0, comma)));
        arrival.fields.emplace_back(
            "count", scalar(comma == std::string::npos ? "1" : line.substr(comma + 1)));
    }
    return trace;
}

// "history-{i:02}" and 7: "history-07".
std::string numbered(const Node& name, const std::string& path, int number, int replicas) {
    const std::string& text = name.scalar;
    const auto refuse = [&](const char* why) {
        return InvalidArgument(fmt::format("{}: {}.name: {}", name.place, path, why));
    };
    const auto begin = text.find("{i");
    if (begin == std::string::npos) {
        if (replicas > 1) {
            throw refuse("with replicas it must hold {i}, as in history-{i:02}");
        }
        return text;
    }
    const auto end = text.find('}', begin);
    const std::string_view width =
        end == std::string::npos ? "?" : std::string_view(text).substr(begin + 2, end - begin - 2);
    const bool padded =
        width.size() == 3 && width.starts_with(":0") && width[2] >= '1' && width[2] <= '9';
    if (!padded && !width.empty()) {
        throw refuse("write {i}, or {i:02} for two digits");
    }
    const int digits = padded ? width[2] - '0' : 1;
    return fmt::format("{}{:0{}}{}", text.substr(0, begin), number, digits, text.substr(end + 1));
}

// startDelay: {every: 50ms}
void place_start(Node& service, const std::string& path, std::size_t position) {
    Node* delay = service.find("startDelay");
    if (delay == nullptr || delay->kind != Node::Kind::map) {
        return;
    }
    Fields fields(*delay, path + ".startDelay", {});
    Time every{};
    fields.read("every", every);
    fields.require(every <= time_max / static_cast<Time::rep>(position + 1),
                   "every",
                   "the last of them would never start");
    fields.finish();
    delay->kind = Node::Kind::scalar;
    delay->scalar = format_duration(every * position);
    delay->fields.clear();
}

}  // namespace

void include_files(Node& root, const std::string& name, const ReadFile& read) {
    include_below(root, name, read, 0);
}

void load_traces(Node& node,
                 const std::string& name,
                 const ReadFile& read,
                 const std::string& path) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        load_traces(node.items[i], name, read, fmt::format("{}[{}]", path, i));
    }
    for (auto& [key, value] : node.fields) {
        load_traces(value, name, read, path.empty() ? key : fmt::format("{}.{}", path, key));
    }
    const Node file = node.kind == Node::Kind::map ? node.take("traceFile") : Node{};
    if (file.kind == Node::Kind::null) {
        return;
    }
    const std::string key = path.empty() ? "traceFile" : path + ".traceFile";
    const auto refuse = [&](const char* why) {
        return InvalidArgument(fmt::format("{}: {}: {}", file.place, key, why));
    };
    if (!read || file.kind != Node::Kind::scalar) {
        throw refuse("expected the name of a file");
    }
    if (node.find("trace") != nullptr) {
        throw refuse("trace is set, too; keep one");
    }
    const std::string found = (std::filesystem::path(name).parent_path() / file.scalar).string();
    node.fields.emplace_back("trace", trace_of(found, read_named(file, key, found, read)));
}

void expand_services(Node& root) {
    const Node variables = root.take("vars");
    (void)Fields(variables, "vars", {});  // Refused, unless they hold keys.
    substitute(root, variables);
    const Node defaults = root.take("defaults");
    (void)Fields(defaults, "defaults", {});
    Node* services = root.find("services");
    if (services == nullptr || services->kind != Node::Kind::list) {
        return;
    }
    std::vector<Node> all;
    for (Node& service : services->items) {
        const std::string path = fmt::format("services[{}]", &service - services->items.data());
        if (service.kind != Node::Kind::map) {
            throw InvalidArgument(
                fmt::format("{}: {}: each entry holds keys, name among them", service.place, path));
        }
        merge_below(service, defaults);
        Fields fields(service, path, {});
        int replicas = 1;
        fields.read("replicas", replicas);
        fields.require(replicas >= 0 && replicas <= services_max,
                       "replicas",
                       fmt::format("give 0 to {}", services_max));
        fields.require(all.size() + static_cast<std::size_t>(replicas) <= services_max,
                       "replicas",
                       fmt::format("at most {} services in all", services_max));
        const Node stripped = [&] {
            Node copy = service;
            copy.take("replicas");
            return copy;
        }();
        for (int i = 1; i <= replicas; ++i) {
            Node& copy = all.emplace_back(stripped);
            if (Node* name = copy.find("name"); name != nullptr) {
                name->scalar = numbered(*name, path, i, replicas);
            }
            place_start(copy, path, all.size() - 1);
        }
    }
    services->items = std::move(all);
}

}  // namespace holdfast::sim
