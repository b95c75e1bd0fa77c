// Writes messages for programs: protobuf's JSON mapping, on one line.
#pragma once

#include <string>

#include "google/protobuf/message.h"

namespace wan::client {

// Returns the message without a line end. Error details of types that this program does not know
// have no JSON form and are left out.
std::string JsonLine(const google::protobuf::Message& message);

}  // namespace wan::client
