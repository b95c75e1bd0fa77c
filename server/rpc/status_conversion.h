// Converts an absl::Status to the grpc::Status of an RPC. The details of the grpc::Status
// (grpc-status-details-bin) are the google.rpc.Status that ToProto returns
// (server/conversion/convert.h), as in Job.error and Event.failed.
#pragma once

#include "absl/status/status.h"

namespace grpc {
class Status;
}

namespace wan::server {

// Clients refuse trailers above 8 KiB, so a long message is cut, and the field violations that do
// not fit are replaced by one violation of field "" that tells their number.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace wan::server
