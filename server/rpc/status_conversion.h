// An absl::Status as the answer of an RPC: a grpc::Status whose details (grpc-status-details-bin)
// are the google.rpc.Status that ToProto (server/conversion/convert.h) makes, the same as in
// Job.error and Event.failed.
#pragma once

#include "absl/status/status.h"

namespace grpc {
class Status;
}

namespace wan::server {

// Shortened where it must be: clients refuse trailers above 8 KiB, so a long message is cut, and
// field violations that do not fit are counted in one last violation of field "".
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace wan::server
