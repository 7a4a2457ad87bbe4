#include "rpc/reflection.hpp"

#include <optional>
#include <set>
#include <utility>

#include "rpc/refusal.hpp"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <server/rpc/reflection.pb.h>

#include <holdfast/api/services.hpp>

namespace holdfast::server::rpc {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

// With the files of the services in it, which the first call builds.
const DescriptorPool& described() {
    static const auto services = api::services();
    return *DescriptorPool::generated_pool();
}

void fail(reflection::Response& response, StatusCode code, std::string text) {
    response.mutable_failure()->set_error_code(static_cast<int>(code));
    response.mutable_failure()->set_error_message(std::move(text));
}

void give(reflection::Response& response, const FileDescriptor* file, const std::string& name) {
    if (file == nullptr) {
        fail(response, StatusCode::not_found, name + " is not known here");
        return;
    }
    google::protobuf::FileDescriptorProto proto;
    file->CopyTo(&proto);
    proto.SerializeToString(response.mutable_files()->add_file_descriptor_proto());
}

void give_extension(reflection::Response& response, const reflection::ExtensionRequest& asked) {
    const Descriptor* type = described().FindMessageTypeByName(asked.containing_type());
    const FieldDescriptor* extension =
        type == nullptr ? nullptr
                        : described().FindExtensionByNumber(type, asked.extension_number());
    give(response,
         extension == nullptr ? nullptr : extension->file(),
         "the extension " + std::to_string(asked.extension_number()) + " of " +
             asked.containing_type());
}

void give_extension_numbers(reflection::Response& response, const std::string& name) {
    const Descriptor* type = described().FindMessageTypeByName(name);
    if (type == nullptr) {
        fail(response, StatusCode::not_found, name + " is not known here");
        return;
    }
    response.mutable_extension_numbers()->set_base_type_name(name);
    std::vector<const FieldDescriptor*> extensions;
    described().FindAllExtensions(type, &extensions);
    for (const FieldDescriptor* extension : extensions) {
        response.mutable_extension_numbers()->add_extension_number(extension->number());
    }
}

class Answering final : public Conversation {
public:
    explicit Answering(const Reflection& reflection) : reflection_(reflection) {}

    bool heard(std::string_view message) override {
        answer_ = reflection_.answer(message);
        return true;
    }
    std::optional<std::string> next() override { return std::exchange(answer_, std::nullopt); }
    bool listens() const override { return true; }

private:
    const Reflection& reflection_;
    std::optional<std::string> answer_;
};

}  // namespace

Reflection::Reflection(const std::vector<std::string>& methods) {
    std::set<std::string> names;
    for (const std::string& method : methods) {
        names.insert(method.substr(1, method.rfind('/') - 1));
    }
    services_.assign(names.begin(), names.end());
}

std::unique_ptr<Conversation> Reflection::begin() const {
    return std::make_unique<Answering>(*this);
}

std::string Reflection::answer(std::string_view request) const {
    using Asked = reflection::Request;
    reflection::Response response;
    Asked& asked = *response.mutable_original_request();
    if (!asked.ParseFromArray(request.data(), static_cast<int>(request.size()))) {
        asked.Clear();
    }
    response.set_valid_host(asked.host());
    switch (asked.asked_case()) {
        case Asked::kListServices:
            for (const std::string& name : services_) {
                response.mutable_services()->add_service()->set_name(name);
            }
            break;
        case Asked::kFileByFilename:
            give(response,
                 described().FindFileByName(asked.file_by_filename()),
                 asked.file_by_filename());
            break;
        case Asked::kFileContainingSymbol:
            give(response,
                 described().FindFileContainingSymbol(asked.file_containing_symbol()),
                 asked.file_containing_symbol());
            break;
        case Asked::kFileContainingExtension:
            give_extension(response, asked.file_containing_extension());
            break;
        case Asked::kAllExtensionNumbersOfType:
            give_extension_numbers(response, asked.all_extension_numbers_of_type());
            break;
        case Asked::ASKED_NOT_SET:
            fail(response, StatusCode::invalid_argument, "the request asks for nothing");
            break;
    }
    return response.SerializeAsString();
}

}  // namespace holdfast::server::rpc
