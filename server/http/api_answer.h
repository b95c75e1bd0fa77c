// Makes answers in the form of the OpenAI API.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/http/http_server.h"

namespace wan::server {

HttpAnswer JsonAnswer(int status, const nlohmann::json& body);
// The same for JSON that is already text.
HttpAnswer JsonTextAnswer(int status, std::string body);

// {"error": {"message", "type", "param", "code"}}. `code` is in lower case; `param` may be empty.
HttpAnswer ErrorAnswer(int status, std::string_view code, std::string_view message,
                       std::string_view param = {});

// Returns the name that callers use for a field of a violation.
using NameField = std::function<std::string(std::string_view field)>;

// Returns the answer for an error status (table in docs/use/openai.md). Its "code" is the status'
// reason, or else the name of its code; "param" is the first violation's field, and the message has
// all violations. Without `name_field` the violations already have the callers' names.
// RESOURCE_EXHAUSTED and UNAVAILABLE get Retry-After.
HttpAnswer ErrorAnswer(const absl::Status& status, const NameField& name_field = nullptr);

}  // namespace wan::server
