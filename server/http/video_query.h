// The query parameters of the OpenAI video API.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::server {

// The part of the list of videos that a request asks for.
struct VideoPage {
  std::optional<std::string> after;  // "jobs/ID"; it need not exist
  int limit = 20;
  bool descending = true;  // the newest first
};

// Reads "after=video_ID&limit=N&order=asc", all of them optional. INVALID_ARGUMENT with a violation
// of each parameter that is unknown or has no such value.
absl::StatusOr<VideoPage> ParseVideoPage(std::string_view text);

// The same for the content of a video, which has one variant: "variant=video", or nothing.
absl::Status CheckContentQuery(std::string_view text);

}  // namespace wan::server
