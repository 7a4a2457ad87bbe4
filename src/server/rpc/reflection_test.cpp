#include "rpc/reflection.hpp"

#include <algorithm>
#include <string>

#include "rpc/refusal.hpp"
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>
#include <server/rpc/reflection.pb.h>

namespace holdfast::server::rpc {

namespace {

constexpr const char* service_file = "temporal/api/workflowservice/v1/service.proto";
constexpr const char* options_type = "google.protobuf.MethodOptions";
constexpr int http_option = 72295728;

class ReflectionTest : public testing::Test {
protected:
    reflection::Response answer() {
        reflection::Response response;
        EXPECT_TRUE(response.ParseFromString(server.answer(request.SerializeAsString())));
        return response;
    }
    // The name of the one file in the answer.
    std::string file() {
        const auto response = answer();
        google::protobuf::FileDescriptorProto file;
        EXPECT_EQ(response.files().file_descriptor_proto_size(), 1) << response.DebugString();
        return response.files().file_descriptor_proto_size() == 1 &&
                       file.ParseFromString(response.files().file_descriptor_proto(0))
                   ? file.name()
                   : "";
    }
    int failure() { return answer().failure().error_code(); }

    reflection::Request request;
    Reflection server{{"/a.B/One", "/a.B/Two", "/c.D/One"}};
};

TEST_F(ReflectionTest, AServiceIsListedOnce) {
    request.set_list_services("");
    const auto response = answer();
    ASSERT_EQ(response.services().service_size(), 2);
    EXPECT_EQ(response.services().service(0).name(), "a.B");
    EXPECT_EQ(response.services().service(1).name(), "c.D");
}

TEST_F(ReflectionTest, AFileIsFoundByItsName) {
    request.set_file_by_filename(service_file);
    EXPECT_EQ(file(), service_file);
}

TEST_F(ReflectionTest, AFileIsFoundByAServiceAMethodAndAMessage) {
    request.set_file_containing_symbol("temporal.api.workflowservice.v1.WorkflowService");
    EXPECT_EQ(file(), service_file);
    request.set_file_containing_symbol(
        "temporal.api.workflowservice.v1.WorkflowService.StartWorkflowExecution");
    EXPECT_EQ(file(), service_file);
    request.set_file_containing_symbol("temporal.api.common.v1.Payload");
    EXPECT_EQ(file(), "temporal/api/common/v1/message.proto");
}

TEST_F(ReflectionTest, AnExtensionIsFoundByItsNumber) {
    request.mutable_file_containing_extension()->set_containing_type(options_type);
    request.mutable_file_containing_extension()->set_extension_number(http_option);
    EXPECT_EQ(file(), "google/api/annotations.proto");
    request.set_all_extension_numbers_of_type(options_type);
    const auto numbers = answer().extension_numbers().extension_number();
    EXPECT_NE(std::find(numbers.begin(), numbers.end(), http_option), numbers.end());
}

TEST_F(ReflectionTest, WhatIsNotKnownIsNotFound) {
    const int not_found = static_cast<int>(StatusCode::not_found);
    request.set_file_by_filename("x.proto");
    EXPECT_EQ(failure(), not_found);
    request.set_file_containing_symbol("a.B");
    EXPECT_EQ(failure(), not_found);
    request.set_all_extension_numbers_of_type("a.B");
    EXPECT_EQ(failure(), not_found);
    request.mutable_file_containing_extension()->set_containing_type(options_type);
    request.mutable_file_containing_extension()->set_extension_number(1);
    EXPECT_EQ(failure(), not_found);
}

TEST_F(ReflectionTest, WhatAsksForNothingIsRefused) {
    EXPECT_EQ(failure(), static_cast<int>(StatusCode::invalid_argument));
    reflection::Response response;
    EXPECT_TRUE(response.ParseFromString(server.answer("\xff\xff\xff")));
    EXPECT_EQ(response.failure().error_code(), static_cast<int>(StatusCode::invalid_argument));
}

}  // namespace

}  // namespace holdfast::server::rpc
