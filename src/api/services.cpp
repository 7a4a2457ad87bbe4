#include <holdfast/api/services.hpp>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_message_reflection.h>
#include <grpc/health/v1/health.pb.h>
#include <temporal/api/operatorservice/v1/service.pb.h>
#include <temporal/api/testservice/v1/service.pb.h>
#include <temporal/api/workflowservice/v1/service.pb.h>

namespace holdfast::api {

namespace {

// A file that has a service and no message has no other symbol to hold on to.
const google::protobuf::internal::DescriptorTable* const tables[] = {
    &descriptor_table_temporal_2fapi_2fworkflowservice_2fv1_2fservice_2eproto,
    &descriptor_table_temporal_2fapi_2foperatorservice_2fv1_2fservice_2eproto,
    &descriptor_table_temporal_2fapi_2ftestservice_2fv1_2fservice_2eproto,
    &descriptor_table_grpc_2fhealth_2fv1_2fhealth_2eproto,
};

}  // namespace

std::vector<const google::protobuf::ServiceDescriptor*> services() {
    const auto* pool = google::protobuf::DescriptorPool::generated_pool();
    std::vector<const google::protobuf::ServiceDescriptor*> found;
    for (const auto* table : tables) {
        const auto* file = pool->FindFileByName(table->filename);
        for (int i = 0; i < file->service_count(); ++i) {
            found.push_back(file->service(i));
        }
    }
    return found;
}

}  // namespace holdfast::api
