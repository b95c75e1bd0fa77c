// Writes messages as protobuf's JSON on one line.
#pragma once

#include <string>

#include "google/protobuf/message.h"

namespace wan::client {

// Returns the message's JSON without a newline. Leaves out error details of unknown types, which
// have no JSON form.
std::string JsonLine(const google::protobuf::Message& message);

}  // namespace wan::client
