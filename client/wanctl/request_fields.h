// The fields of a request that files of prompts and cases may set, by the names of wanctl's flags.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// Stores a value in the request. Fails with INVALID_ARGUMENT, whose message continues a sentence
// that begins with the field's name: "expects a whole number, not 'x'".
using FieldSetter = std::function<absl::Status(const std::string&, wan::v1::GenerationRequest&)>;

// The functions that set a field, by its name, for example "negative_prompt" or "steps". The map
// has no function for the image.
const std::map<std::string, FieldSetter>& RequestFields();

}  // namespace wan::client
