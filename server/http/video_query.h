// Parses the query parameters of the OpenAI video API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/http/http_server.h"

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

// kLive: the video while it is made, and its file once the job has ended.
enum class ContentVariant { kVideo, kThumbnail, kSpritesheet, kLive };

// Parses the query of a download, whose only parameter is "variant=video", which may be left out.
absl::StatusOr<ContentVariant> ParseContentQuery(std::string_view text);

// What a watcher of a video asks for.
struct EventsQuery {
  // Events up to this sequence are not sent; nothing: the state at this moment and later events.
  std::optional<int64_t> after;
  bool previews = false;  // whether previews are sent as well
};

// Parses "after=N&previews=true"; each of the two may be left out. The field Last-Event-ID, which
// an EventSource sends when it connects again, counts in place of `after`.
absl::StatusOr<EventsQuery> ParseEventsQuery(const HttpHead& head);

enum class ReportFormat { kHtml, kText, kMarkdown, kJson };

// Parses the query of a report, whose only parameter is "format=html", which may be left out.
absl::StatusOr<ReportFormat> ParseReportQuery(std::string_view text);

}  // namespace wan::server
