// Answers in the shape of the OpenAI API.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/http/http_server.h"

namespace wan::server {

HttpAnswer JsonAnswer(int status, const nlohmann::json& body);
// The same for JSON that is written already.
HttpAnswer JsonTextAnswer(int status, std::string body);

// {"error": {"message", "type", "param", "code"}}. `code` is in lower case; `param` may be empty.
HttpAnswer ErrorAnswer(int status, std::string_view code, std::string_view message,
                       std::string_view param = {});

// Returns the caller's name of a field in a violation.
using NameField = std::function<std::string(std::string_view field)>;

// The answer for a status that is not OK (docs/use/openai.md has the table). Its code is the
// status' reason, or the name of its code; `param` is the first field of its violations, and the
// message has all of them. Without `name_field` the violations already have the caller's names.
// RESOURCE_EXHAUSTED and UNAVAILABLE have Retry-After.
HttpAnswer ErrorAnswer(const absl::Status& status, const NameField& name_field = nullptr);

}  // namespace wan::server
