#include "rpc/http/json.hpp"

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>
#include <temporal/api/common/v1/message.pb.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/json_text.hpp>

namespace holdfast::server::rpc {

namespace {

namespace pb = google::protobuf;
using temporal::api::common::v1::Payload;
using temporal::api::common::v1::Payloads;

constexpr std::string_view message_type_key = "_protoMessageType";
constexpr const char* encoding_key = "encoding";
constexpr const char* message_type_metadata = "messageType";

// The JSON in a payload may be this deep, so that what contains it is not too deep.
constexpr std::size_t payload_depth_max = json::depth_max / 2;

bool is_json(std::string_view text) {
    json::Scanner scanner(text, payload_depth_max);
    return scanner.value() && scanner.at_end();
}

bool is_object(std::string_view text) {
    return json::trim(text).starts_with('{');
}

bool is_array(std::string_view text) {
    return json::trim(text).starts_with('[');
}

std::string text_of(std::string_view literal) {
    std::string text;
    json::append_unescaped(text, json::trim(literal));
    return text;
}

// Calls `each` with the name and the value of each member. Requires: an object.
template <class Each>
void for_members(std::string_view object, const Each& each) {
    json::Scanner scanner(object);
    (void)scanner.object([&](std::string_view key, std::string_view value) -> const char* {
        each(key, json::trim(value));
        return nullptr;
    });
}

template <class Each>
void for_elements(std::string_view array, const Each& each) {
    json::Scanner scanner(array);
    (void)scanner.array([&](std::string_view value) -> const char* {
        each(json::trim(value));
        return nullptr;
    });
}

const pb::FieldDescriptor* field_named(const pb::Descriptor& type, std::string_view key) {
    const std::string name(key);
    const pb::FieldDescriptor* field = type.FindFieldByCamelcaseName(name);
    return field != nullptr ? field : type.FindFieldByName(name);
}

// The letters and digits of a name, in lower case.
std::string squashed(std::string_view name) {
    std::string letters;
    for (const char letter : name) {
        if (letter != '_') {
            letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
        }
    }
    return letters;
}

// "Running" is WORKFLOW_EXECUTION_STATUS_RUNNING of WorkflowExecutionStatus. Null if it is not the
// short name of an enumerator.
const pb::EnumValueDescriptor* short_enumerator(const pb::EnumDescriptor& type,
                                                std::string_view name) {
    const std::string wanted = squashed(type.name()) + squashed(name);
    for (int i = 0; i < type.value_count(); ++i) {
        if (squashed(type.value(i)->name()) == wanted) {
            return type.value(i);
        }
    }
    return nullptr;
}

// Copies JSON of a message, and changes what the API writes in its own way.
class Rewriter {
public:
    virtual ~Rewriter() = default;

    void message(std::string_view text, const pb::Descriptor& type, std::string& out) {
        if (type.full_name() == Payload::descriptor()->full_name()) {
            payload(text, out);
        } else if (type.full_name() == Payloads::descriptor()->full_name()) {
            payloads(text, out);
        } else if (type.well_known_type() == pb::Descriptor::WELLKNOWNTYPE_ANY) {
            any(text, out);
        } else if (type.well_known_type() != pb::Descriptor::WELLKNOWNTYPE_UNSPECIFIED) {
            out += text;
        } else {
            members(text, type, out);
        }
    }

protected:
    virtual void payload(std::string_view text, std::string& out) = 0;
    virtual void payloads(std::string_view text, std::string& out) = 0;
    virtual void enumerator(std::string_view text,
                            const pb::EnumDescriptor& /*type*/,
                            std::string& out) {
        out += text;
    }

    void members(std::string_view text, const pb::Descriptor& type, std::string& out) {
        if (!is_object(text)) {
            out += text;
            return;
        }
        out += '{';
        bool first = true;
        for_members(text, [&](std::string_view key, std::string_view value) {
            out += std::exchange(first, false) ? "\"" : ",\"";
            out += key;
            out += "\":";
            if (const pb::FieldDescriptor* field = field_named(type, key)) {
                of_field(value, *field, out);
            } else {
                out += value;
            }
        });
        out += '}';
    }

private:
    void any(std::string_view text, std::string& out) {
        const pb::Descriptor* held = nullptr;
        if (is_object(text)) {
            for_members(text, [&](std::string_view key, std::string_view value) {
                if (key == "@type" && value.starts_with('"')) {
                    const std::string url = text_of(value);
                    held = pb::DescriptorPool::generated_pool()->FindMessageTypeByName(
                        url.substr(url.rfind('/') + 1));
                }
            });
        }
        if (held == nullptr ||
            held->well_known_type() != pb::Descriptor::WELLKNOWNTYPE_UNSPECIFIED) {
            out += text;
        } else {
            members(text, *held, out);
        }
    }

    void of_field(std::string_view text, const pb::FieldDescriptor& field, std::string& out) {
        if (field.is_map() && is_object(text)) {
            map(text, *field.message_type()->map_value(), out);
        } else if (field.is_repeated() && is_array(text)) {
            out += '[';
            bool first = true;
            for_elements(text, [&](std::string_view element) {
                out += std::exchange(first, false) ? "" : ",";
                value(element, field, out);
            });
            out += ']';
        } else {
            value(text, field, out);
        }
    }

    void map(std::string_view text, const pb::FieldDescriptor& of, std::string& out) {
        out += '{';
        bool first = true;
        for_members(text, [&](std::string_view key, std::string_view element) {
            out += std::exchange(first, false) ? "\"" : ",\"";
            out += key;
            out += "\":";
            value(element, of, out);
        });
        out += '}';
    }

    void value(std::string_view text, const pb::FieldDescriptor& field, std::string& out) {
        if (field.message_type() != nullptr && !field.is_map()) {
            message(text, *field.message_type(), out);
        } else if (field.enum_type() != nullptr) {
            enumerator(text, *field.enum_type(), out);
        } else {
            out += text;
        }
    }
};

// ---- Out ----------------------------------------------------------------------------------------

// Nothing if the shorthand would lose something.
std::optional<std::string> short_form(std::string_view text) {
    Payload payload;
    if (!pb::util::JsonStringToMessage(std::string(text), &payload).ok() ||
        payload.external_payloads_size() != 0) {
        return std::nullopt;
    }
    const auto metadata = [&](const char* key) {
        const auto found = payload.metadata().find(key);
        return found == payload.metadata().end() ? std::string() : found->second;
    };
    const std::string encoding = metadata(encoding_key);
    const std::string_view data = json::trim(payload.data());
    if (encoding == "binary/null") {
        return "null";
    }
    if (encoding == "json/plain" && payload.metadata_size() == 1 && is_json(data)) {
        return std::string(data);
    }
    const std::string type = metadata(message_type_metadata);
    if (encoding == "json/protobuf" && payload.metadata_size() == 2 && !type.empty() &&
        is_object(data) && is_json(data)) {
        std::string object = fmt::format("{{\"{}\":", message_type_key);
        json::append_string(object, type);
        const std::string_view rest = json::trim(data.substr(1));
        object += rest.starts_with('}') ? "" : ",";
        return object + std::string(rest);
    }
    return std::nullopt;
}

class Shortener final : public Rewriter {
    void payload(std::string_view text, std::string& out) override {
        const auto form = short_form(text);
        out += form ? std::string_view(*form) : text;
    }

    // All of them in shorthand, or none.
    void payloads(std::string_view text, std::string& out) override {
        std::string array;
        bool complete = is_object(text);
        if (complete) {
            for_members(text, [&](std::string_view, std::string_view list) {
                for_elements(list, [&](std::string_view one) {
                    const auto form = short_form(one);
                    complete = complete && form;
                    array += (array.empty() ? "" : ",") + form.value_or("");
                });
            });
        }
        out += complete ? "[" + array + "]" : std::string(text);
    }
};

// ---- In -----------------------------------------------------------------------------------------

bool is_full_form(std::string_view text) {
    Payload payload;
    return is_object(text) && pb::util::JsonStringToMessage(std::string(text), &payload).ok() &&
           payload.metadata().contains(encoding_key);
}

// The payload of an object with "_protoMessageType"; false if it is another one.
bool take_protobuf(std::string_view text, Payload& payload) {
    if (!is_object(text)) {
        return false;
    }
    std::string type;
    std::string object;
    for_members(text, [&](std::string_view key, std::string_view value) {
        if (key == message_type_key && value.starts_with('"')) {
            type = text_of(value);
        } else {
            object += fmt::format("{}\"{}\":{}", object.empty() ? "" : ",", key, value);
        }
    });
    if (type.empty()) {
        return false;
    }
    (*payload.mutable_metadata())[encoding_key] = "json/protobuf";
    (*payload.mutable_metadata())[message_type_metadata] = type;
    payload.set_data("{" + object + "}");
    return true;
}

std::string full_form(std::string_view text) {
    if (is_full_form(text)) {
        return std::string(text);
    }
    Payload payload;
    if (text == "null") {
        (*payload.mutable_metadata())[encoding_key] = "binary/null";
    } else if (!take_protobuf(text, payload)) {
        (*payload.mutable_metadata())[encoding_key] = "json/plain";
        payload.set_data(std::string(text));
    }
    std::string form;
    (void)pb::util::MessageToJsonString(payload, &form);
    return form;
}

class Expander final : public Rewriter {
public:
    explicit Expander(Shorthand shorthand) : shorthand_(shorthand) {}

private:
    void payload(std::string_view text, std::string& out) override {
        out += shorthand_ == Shorthand::on ? full_form(text) : std::string(text);
    }
    void payloads(std::string_view text, std::string& out) override {
        if (shorthand_ == Shorthand::off || !is_array(text)) {
            members(text, *Payloads::descriptor(), out);
            return;
        }
        std::string list;
        for_elements(text, [&](std::string_view one) {
            list += (list.empty() ? "" : ",") + full_form(one);
        });
        out += "{\"payloads\":[" + list + "]}";
    }
    void enumerator(std::string_view text,
                    const pb::EnumDescriptor& type,
                    std::string& out) override {
        if (text.starts_with('"') && type.FindValueByName(text_of(text)) == nullptr) {
            if (const auto* meant = short_enumerator(type, text_of(text))) {
                out += "\"" + meant->name() + "\"";
                return;
            }
        }
        out += text;
    }

    const Shorthand shorthand_;
};

// ---- In lines -----------------------------------------------------------------------------------

class Printer final : public json::Visitor {
public:
    void open_object(std::size_t /*at*/) override { open('{', '}'); }
    void open_array(std::size_t /*at*/) override { open('[', ']'); }
    void key(std::size_t /*at*/, std::string_view literal) override {
        next_line();
        text += literal;
        text += ": ";
        after_key_ = true;
    }
    void scalar(std::size_t /*at*/, std::string_view literal) override {
        next_line();
        text += literal;
    }
    void close() override {
        const Level level = levels_.back();
        levels_.pop_back();
        if (!level.empty) {
            text += '\n';
            text.append(2 * levels_.size(), ' ');
        }
        text += level.end;
    }

    std::string text;

private:
    struct Level {
        char end;
        bool empty = true;
    };

    void open(char begin, char end) {
        next_line();
        text += begin;
        levels_.push_back({.end = end});
    }
    // Before a key, and before a value that has none.
    void next_line() {
        if (std::exchange(after_key_, false) || levels_.empty()) {
            return;
        }
        text += std::exchange(levels_.back().empty, false) ? "\n" : ",\n";
        text.append(2 * levels_.size(), ' ');
    }

    std::vector<Level> levels_;
    bool after_key_ = false;
};

}  // namespace

std::optional<std::string> from_json(std::string_view text,
                                     Shorthand shorthand,
                                     pb::Message& message) {
    json::Scanner scanner(text);
    if (!scanner.value() || !scanner.at_end()) {
        return fmt::format("the text is not valid JSON: {} at byte {}",
                           scanner.fault() != nullptr ? scanner.fault() : "expected its end",
                           scanner.at());
    }
    std::string full;
    Expander(shorthand).message(json::trim(text), *message.GetDescriptor(), full);
    const std::unique_ptr<pb::Message> parsed(message.New());
    const auto status = pb::util::JsonStringToMessage(full, parsed.get());
    if (!status.ok()) {
        return std::string(status.message());
    }
    message.MergeFrom(*parsed);
    return std::nullopt;
}

std::string to_json(const pb::Message& message, Shorthand shorthand) {
    std::string text;
    const auto status = pb::util::MessageToJsonString(message, &text);
    if (!status.ok()) {
        throw Error(
            Code::internal,
            Outcome::not_applied,
            fmt::format(
                "{} has no JSON: {}", message.GetTypeName(), std::string(status.message())));
    }
    if (shorthand == Shorthand::off) {
        return text;
    }
    std::string shortened;
    Shortener().message(text, *message.GetDescriptor(), shortened);
    return shortened;
}

std::string pretty_json(std::string_view text) {
    json::Scanner scanner(text);
    Printer printer;
    (void)scanner.walk(printer);
    return std::move(printer.text);
}

}  // namespace holdfast::server::rpc
