// The query parameters of the OpenAI video API.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::server {

// INVALID_ARGUMENT with a violation of the first parameter that is not one of `known`.
absl::Status CheckQueryNames(const std::map<std::string, std::string>& query,
                             const std::vector<std::string>& known);

// Which part of the list of videos a request asks for.
struct VideoPage {
  std::optional<std::string> after;  // "jobs/ID"; it need not exist
  int limit = 20;
  bool descending = true;  // the newest first
};

// Of "after=video_ID&limit=N&order=asc", all of them optional. INVALID_ARGUMENT with a violation of
// each parameter that is unknown or has no such value.
absl::StatusOr<VideoPage> ParseVideoPage(std::string_view text);

}  // namespace wan::server
