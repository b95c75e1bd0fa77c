// The answers of server reflection, from the descriptors that the process has.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "grpc/reflection/v1/reflection.pb.h"

namespace wan::server {

// Most bytes of a name that a question has. Protobuf hashes a name once for each dot in it, so that
// the time of a look-up grows with the square of its length: 1 KiB takes microseconds, 4 MiB take
// an hour.
inline constexpr size_t kMostReflectedNameBytes = 1024;

// Answers one question; `services` are the names that it lists. Any thread. An error in the
// question is in the answer's error_response, as the protocol requires. The answer repeats the
// question, so the caller bounds that.
grpc::reflection::v1::ServerReflectionResponse AnswerReflection(
    const std::vector<std::string>& services,
    const grpc::reflection::v1::ServerReflectionRequest& question);

}  // namespace wan::server
