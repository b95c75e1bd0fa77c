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

// kLive: the video while the server makes it; after the job's end, the video's file.
enum class ContentVariant { kVideo, kThumbnail, kSpritesheet, kLive };

// Parses the query of a download. The only parameter is "variant=video"; callers may leave it out.
absl::StatusOr<ContentVariant> ParseContentQuery(std::string_view text);

// The part of a video's events that a watcher asks for.
struct EventsQuery {
  // The server sends the events after this sequence; nullopt: the current state and later events.
  std::optional<int64_t> after;
  bool previews = false;  // whether previews are sent as well
};

// Parses "after=N&previews=true"; each of the two may be left out. The header field Last-Event-ID,
// which an EventSource sends when it reconnects, replaces `after`.
absl::StatusOr<EventsQuery> ParseEventsQuery(const HttpHead& head);

enum class ReportFormat { kHtml, kText, kMarkdown, kJson };

// Parses the query of a report. The only parameter is "format=html"; callers may leave it out.
absl::StatusOr<ReportFormat> ParseReportQuery(std::string_view text);

}  // namespace wan::server
