// Computes the answers of server reflection from the descriptors linked into the process.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "grpc/reflection/v1/reflection.pb.h"

namespace wan::server {

// Maximum number of bytes of a name that a request may have. Protobuf hashes a name once for each
// dot in the name, so the time of a look-up grows with the square of the length: 1 KiB takes
// microseconds, 4 MiB would take an hour.
inline constexpr size_t kMostReflectedNameBytes = 1024;

// Answers one request; `services` has the names for list_services. Any thread may call
// AnswerReflection. Returns errors in the answer's error_response, as the protocol requires. The
// answer contains the request, so the caller must bound the request's size.
grpc::reflection::v1::ServerReflectionResponse AnswerReflection(
    const std::vector<std::string>& services,
    const grpc::reflection::v1::ServerReflectionRequest& question);

}  // namespace wan::server
