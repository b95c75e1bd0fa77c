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
// Returns an answer whose JSON is already text.
HttpAnswer JsonTextAnswer(int status, std::string body);

// The body is {"error": {"message", "type", "param", "code"}}. `code` is written in lower case;
// `param` may be empty.
HttpAnswer ErrorAnswer(int status, std::string_view code, std::string_view message,
                       std::string_view param = {});

// Returns the name that callers use for the field that a violation names.
using NameField = std::function<std::string(std::string_view field)>;

// Returns the answer for an error status (table in docs/use/openai.md). The answer's "code" is the
// reason of the status or, without one, the name of the status' code; "param" is the field of the
// first violation, and the message has all violations. If `name_field` is null, the violations must
// already have the callers' names. Answers for RESOURCE_EXHAUSTED and UNAVAILABLE have the header
// field Retry-After.
HttpAnswer ErrorAnswer(const absl::Status& status, const NameField& name_field = nullptr);

}  // namespace wan::server
