#include "server/http/api_answer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

using nlohmann::json;

int HttpStatusOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kOutOfRange:
      return 416;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

std::string_view TypeOf(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

// Returns the violations as one text: "width: must be ...; height: must be ...".
std::string MessageOf(const absl::Status& status, const std::vector<FieldViolation>& violations) {
  if (violations.empty()) return std::string(status.message());
  return absl::StrJoin(violations, "; ", [](std::string* text, const FieldViolation& violation) {
    absl::StrAppend(text, violation.field, violation.field.empty() ? "" : ": ",
                    violation.description);
  });
}

}  // namespace

HttpAnswer JsonTextAnswer(int status, std::string body) {
  HttpAnswer answer;
  answer.status = status;
  answer.fields = {{"Content-Type", "application/json"}};
  answer.body = std::move(body);
  return answer;
}

HttpAnswer JsonAnswer(int status, const json& body) {
  return JsonTextAnswer(status, body.dump(-1, ' ', false, json::error_handler_t::replace));
}

HttpAnswer ErrorAnswer(int status, std::string_view code, std::string_view message,
                       std::string_view param) {
  json error = {{"message", message},
                {"type", TypeOf(status)},
                {"param", param.empty() ? json(nullptr) : json(param)},
                {"code", code}};
  HttpAnswer answer = JsonAnswer(status, {{"error", std::move(error)}});
  if (status == 401) answer.fields.emplace_back("WWW-Authenticate", "Bearer");
  // OpenAI's clients retry a request after 409 by themselves; on this server the retry would fail
  // again.
  if (status == 409) answer.fields.emplace_back("x-should-retry", "false");
  return answer;
}

HttpAnswer ErrorAnswer(const absl::Status& status, const NameField& name_field) {
  std::vector<FieldViolation> violations = FieldViolationsOf(status);
  if (name_field) {
    for (FieldViolation& violation : violations) violation.field = name_field(violation.field);
  }
  std::string code = ReasonOf(status);
  if (code.empty()) code = absl::StatusCodeToString(status.code());
  HttpAnswer answer = ErrorAnswer(HttpStatusOf(status.code()), absl::AsciiStrToLower(code),
                                  MessageOf(status, violations),
                                  violations.empty() ? std::string() : violations.front().field);
  if (const std::optional<absl::Duration> delay = RetryDelayOf(status); delay.has_value()) {
    const double seconds = std::max(1.0, std::ceil(absl::ToDoubleSeconds(*delay)));
    answer.fields.emplace_back("Retry-After", absl::StrCat(static_cast<int64_t>(seconds)));
  }
  return answer;
}

}  // namespace wan::server
