// Parses the query parameters of the OpenAI video API.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::server {

// The part of the list of videos that the caller asks for.
struct VideoPage {
  std::optional<std::string> after;  // the job before the page, "jobs/ID"; it need not exist
  int limit = 20;
  bool descending = true;  // whether the newest video comes first
};

// Parses "after=video_ID&limit=N&order=asc"; each of the three may be left out. Fails with
// INVALID_ARGUMENT and a violation of each parameter that is unknown or has a wrong value.
absl::StatusOr<VideoPage> ParseVideoPage(std::string_view text);

// Checks the query of a download, whose only parameter is "variant=video", which may be left out.
absl::Status CheckContentQuery(std::string_view text);

}  // namespace wan::server
