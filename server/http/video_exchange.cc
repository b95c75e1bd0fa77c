#include "server/http/video_exchange.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/conversion/errors.h"
#include "server/http/video_id.h"

namespace wan::server {

HttpAnswer VideoExchange::TooLarge(std::string_view bytes) const {
  call->End(absl::InvalidArgumentError("the body is too large")).IgnoreError();
  return ErrorAnswer(
      413, "request_too_large",
      absl::StrCat("the body has ", std::string(bytes), " bytes, and may have ", most_bytes));
}

HttpAnswer VideoExchange::Failed(const absl::Status& status, const NameField& name_field) const {
  const absl::Status shown = call->End(status);
  if (job.empty()) return ErrorAnswer(shown, name_field);
  return ErrorAnswer(
      WithMessage(shown, absl::StrReplaceAll(shown.message(), {{job, VideoIdOf(job)}})));
}

HttpAnswer VideoExchange::Done(const nlohmann::json& body) const {
  call->End(absl::OkStatus()).IgnoreError();
  return JsonAnswer(200, body);
}

}  // namespace wan::server
