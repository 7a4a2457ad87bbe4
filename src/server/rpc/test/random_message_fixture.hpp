// Messages with random content that still parse: what a careless or hostile client may send.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <holdfast/base/random.hpp>

namespace holdfast::server::rpc::tests {

class RandomMessages {
public:
    // `texts` and `tokens` are what fields of these kinds are often filled with, so that a message
    // gets further than its first check.
    RandomMessages(Random& random, std::vector<std::string> texts, std::vector<std::string> tokens)
        : random_(random), texts_(std::move(texts)), tokens_(std::move(tokens)) {}

    void fill(google::protobuf::Message& message, int depth = 0) {
        const auto& descriptor = *message.GetDescriptor();
        for (int i = 0; i < descriptor.field_count(); ++i) {
            const auto& field = *descriptor.field(i);
            if (random_.below(field.name() == "namespace" ? 10 : 3) != 0) {
                const std::uint64_t count = field.is_repeated() ? random_.below(3) : 1;
                for (std::uint64_t each = 0; each < count; ++each) {
                    set(message, field, depth);
                }
            }
        }
    }

    [[nodiscard]] std::string bytes(std::size_t bytes_max) {
        std::string made(random_.below(bytes_max + 1), '\0');
        for (char& byte : made) {
            byte = static_cast<char>(random_.below(256));
        }
        return made;
    }

private:
    using Field = google::protobuf::FieldDescriptor;
    static constexpr int depth_max = 5;

    [[nodiscard]] const std::string& one_of(const std::vector<std::string>& choices) {
        return choices[random_.below(choices.size())];
    }
    template <class Number>
    [[nodiscard]] Number number() {
        switch (random_.below(6)) {
            case 0:
                return std::numeric_limits<Number>::lowest();
            case 1:
                return std::numeric_limits<Number>::max();
            case 2:
                return static_cast<Number>(-1);
            default:
                return static_cast<Number>(random_.below(20));
        }
    }

    void set(google::protobuf::Message& message, const Field& field, int depth) {
        if (field.cpp_type() == Field::CPPTYPE_MESSAGE) {
            if (depth < depth_max) {
                auto& its = *message.GetReflection();
                fill(field.is_repeated() ? *its.AddMessage(&message, &field)
                                         : *its.MutableMessage(&message, &field),
                     depth + 1);
            }
        } else if (field.cpp_type() == Field::CPPTYPE_STRING) {
            set_text(message, field);
        } else {
            set_number(message, field);
        }
    }
    void set_text(google::protobuf::Message& message, const Field& field) {
        const bool is_bytes = field.type() == Field::TYPE_BYTES;
        std::string value = field.name() == "namespace" ? texts_.front()
                            : is_bytes                  ? one_of(tokens_)
                                                        : one_of(texts_);
        auto& its = *message.GetReflection();
        field.is_repeated() ? its.AddString(&message, &field, std::move(value))
                            : its.SetString(&message, &field, std::move(value));
    }
    void set_number(google::protobuf::Message& message, const Field& field) {
        auto& its = *message.GetReflection();
        const bool many = field.is_repeated();
        switch (field.cpp_type()) {
            case Field::CPPTYPE_INT32:
                many ? its.AddInt32(&message, &field, number<std::int32_t>())
                     : its.SetInt32(&message, &field, number<std::int32_t>());
                return;
            case Field::CPPTYPE_INT64:
                many ? its.AddInt64(&message, &field, number<std::int64_t>())
                     : its.SetInt64(&message, &field, number<std::int64_t>());
                return;
            case Field::CPPTYPE_BOOL:
                many ? its.AddBool(&message, &field, random_.below(2) == 0)
                     : its.SetBool(&message, &field, random_.below(2) == 0);
                return;
            case Field::CPPTYPE_DOUBLE:
                many ? its.AddDouble(&message, &field, number<double>())
                     : its.SetDouble(&message, &field, number<double>());
                return;
            case Field::CPPTYPE_FLOAT:
                many ? its.AddFloat(&message, &field, number<float>())
                     : its.SetFloat(&message, &field, number<float>());
                return;
            case Field::CPPTYPE_ENUM: {
                const int value = static_cast<int>(random_.below(10)) - 1;
                many ? its.AddEnumValue(&message, &field, value)
                     : its.SetEnumValue(&message, &field, value);
                return;
            }
            default:  // The API has no unsigned fields that matter here.
                return;
        }
    }

    Random& random_;
    const std::vector<std::string> texts_;
    const std::vector<std::string> tokens_;
};

}  // namespace holdfast::server::rpc::tests
