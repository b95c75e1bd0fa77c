// Parses the query parameters of the OpenAI video API.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::server {

// The requested part of the list of videos.
struct VideoPage {
  std::optional<std::string> after;  // "jobs/ID" before the page; need not exist
  int limit = 20;
  bool descending = true;  // newest first
};

// Parses "after=video_ID&limit=N&order=asc", all optional. INVALID_ARGUMENT with a violation of
// each parameter that is unknown or has a wrong value.
absl::StatusOr<VideoPage> ParseVideoPage(std::string_view text);

// The same for downloads, whose only parameter is "variant=video" (optional).
absl::Status CheckContentQuery(std::string_view text);

}  // namespace wan::server
