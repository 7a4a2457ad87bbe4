#include "rpc/http/request.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/json_text.hpp>
#include <holdfast/base/percent.hpp>

namespace holdfast::server::rpc {

namespace {

namespace pb = google::protobuf;

using Parameter = std::pair<std::string, std::string>;

// In a query a + is a blank.
std::optional<std::string> decoded(std::string_view text) {
    std::string blanks(text);
    std::ranges::replace(blanks, '+', ' ');
    return percent_decoded(blanks);
}

// In their order; what is not percent coding is left out.
std::vector<Parameter> parameters_of(std::string_view query) {
    std::vector<Parameter> parameters;
    while (!query.empty()) {
        const std::size_t end = std::min(query.find('&'), query.size());
        const std::string_view one = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        const std::size_t equals = std::min(one.find('='), one.size());
        auto name = decoded(one.substr(0, equals));
        auto value = decoded(one.substr(std::min(equals + 1, one.size())));
        if (name && value && !name->empty()) {
            parameters.emplace_back(*std::move(name), *std::move(value));
        }
    }
    return parameters;
}

bool is_on(std::string_view value) {
    return value != "false" && value != "0";
}

bool is_bool(const pb::FieldDescriptor& field) {
    return field.cpp_type() == pb::FieldDescriptor::CPPTYPE_BOOL ||
           (field.message_type() != nullptr &&
            field.message_type()->well_known_type() == pb::Descriptor::WELLKNOWNTYPE_BOOLVALUE);
}

const pb::FieldDescriptor* field_named(const pb::Descriptor& type, const std::string& name) {
    const pb::FieldDescriptor* field = type.FindFieldByName(name);
    return field != nullptr ? field : type.FindFieldByCamelcaseName(name);
}

// The fields from the request to the one that the path names; empty if it has none of that path, or
// none that a text can fill.
std::vector<const pb::FieldDescriptor*> fields_of(const pb::Descriptor& type,
                                                  std::string_view path) {
    std::vector<const pb::FieldDescriptor*> fields;
    const pb::Descriptor* in = &type;
    while (true) {
        const std::size_t dot = path.find('.');
        const auto* field = field_named(*in, std::string(path.substr(0, dot)));
        if (field == nullptr || field->is_map()) {
            return {};
        }
        fields.push_back(field);
        if (dot == path.npos) {
            const pb::Descriptor* held = field->message_type();
            const bool a_text = held == nullptr || held->well_known_type() !=
                                                       pb::Descriptor::WELLKNOWNTYPE_UNSPECIFIED;
            return a_text ? fields : std::vector<const pb::FieldDescriptor*>{};
        }
        if (field->message_type() == nullptr || field->is_repeated()) {
            return {};
        }
        in = field->message_type();
        path.remove_prefix(dot + 1);
    }
}

// Sets one field, or adds to a list. A path that the request does not have is ignored.
std::optional<std::string> set_field(std::string_view path,
                                     const std::string& value,
                                     pb::Message& request) {
    const auto fields = fields_of(*request.GetDescriptor(), path);
    if (fields.empty()) {
        return std::nullopt;
    }
    std::string text;
    for (const pb::FieldDescriptor* field : fields) {
        text += fmt::format("{{\"{}\":", field->json_name());
    }
    const pb::FieldDescriptor& last = *fields.back();
    text += last.is_repeated() ? "[" : "";
    try {
        if (is_bool(last) && (value == "true" || value == "false")) {
            text += value;
        } else {
            json::append_string(text, value);
        }
    } catch (const InvalidArgument&) {
        return fmt::format("the value of '{}' is not UTF-8", path);
    }
    text += last.is_repeated() ? "]" : "";
    text.append(fields.size(), '}');
    if (auto wrong = from_json(text, Shorthand::off, request)) {
        return fmt::format("the value of '{}' does not fit: {}", path, *wrong);
    }
    return std::nullopt;
}

}  // namespace

Wishes wishes_of(std::string_view query, std::string_view accept) {
    Wishes wishes;
    const auto accepts = [&](std::string_view word) { return accept.find(word) != accept.npos; };
    for (const auto& [name, value] : parameters_of(query)) {
        if (name == "noPayloadShorthand" && is_on(value)) {
            wishes.shorthand = Shorthand::off;
        } else if (name == "pretty" && is_on(value)) {
            wishes.pretty = true;
        }
    }
    if (accepts("+no-payload-shorthand") || accepts("-no-payload-shorthand")) {
        wishes.shorthand = Shorthand::off;
    }
    wishes.pretty = wishes.pretty || accepts("+pretty");
    return wishes;
}

std::optional<std::string> read_request(const Found& found,
                                        std::string_view query,
                                        std::string_view body,
                                        Shorthand shorthand,
                                        pb::Message& request) {
    if (found.route->has_body && !json::trim(body).empty()) {
        if (auto wrong = from_json(body, shorthand, request)) {
            return wrong;
        }
    }
    if (!found.route->has_body) {
        for (const auto& [name, value] : parameters_of(query)) {
            if (auto wrong = set_field(name, value, request)) {
                return wrong;
            }
        }
    }
    for (const auto& [path, value] : found.fields) {
        if (auto wrong = set_field(path, value, request)) {
            return wrong;
        }
    }
    return std::nullopt;
}

}  // namespace holdfast::server::rpc
