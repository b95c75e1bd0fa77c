// Writes messages on one line in the JSON form of protobuf.
#pragma once

#include <string>

#include "google/protobuf/message.h"

namespace wan::client {

// Returns the message's JSON without a newline. Leaves out error details of unknown types, because
// these have no JSON form.
std::string JsonLine(const google::protobuf::Message& message);

}  // namespace wan::client
