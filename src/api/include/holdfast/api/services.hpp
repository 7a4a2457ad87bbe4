// The services of the API, as their .proto files describe them.
//
// The messages are included by the name of their file, <temporal/api/history/v1/message.pb.h>.
// Services have no generated classes; what remains of them are descriptors, which reflection and
// the dispatch table's tests read.
#pragma once

#include <vector>

namespace google::protobuf {
class ServiceDescriptor;
}

namespace holdfast::api {

// WorkflowService, OperatorService, TestService and grpc.health.v1.Health, in this order. A program
// that calls this has their files in protobuf's generated pool; without it a linker leaves them
// out.
[[nodiscard]] std::vector<const google::protobuf::ServiceDescriptor*> services();

}  // namespace holdfast::api
