#include "server/http/video_query.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "server/config/nearest_name.h"
#include "server/http/form.h"
#include "server/http/video_id.h"

namespace wan::server {
namespace {

constexpr int kMaxLimit = 100;

void Append(std::string* text, std::string_view name) { text->append(name); }

using Query = std::map<std::string, std::string>;

// Returns INVALID_ARGUMENT with a violation for each parameter that is not in `known`.
absl::Status CheckQueryNames(const Query& query, const std::vector<std::string_view>& known) {
  std::vector<FieldViolation> violations;
  for (const auto& [name, value] : query) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view nearest = NearestName(name, known);
    violations.push_back(
        {name.substr(0, kMaxShownName),
         absl::StrCat("is not a parameter of this request; ",
                      nearest.empty()
                          ? absl::StrCat("it takes ", absl::StrJoin(known, ", ", Append))
                          : absl::StrCat("did you mean ", std::string(nearest), "?"))});
  }
  return violations.empty() ? absl::OkStatus() : InvalidFields(violations);
}

// Parses a query whose only parameter is `name` with one of the choices; the first choice is the
// default.
template <typename Value, size_t kCount>
absl::StatusOr<Value> ParseChoice(std::string_view text, const char* name,
                                  const std::pair<const char*, Value> (&choices)[kCount]) {
  const absl::StatusOr<Query> query = ParseQuery(text);
  if (!query.ok()) return query.status();
  if (absl::Status status = CheckQueryNames(*query, {name}); !status.ok()) return status;
  const auto asked = query->find(name);
  if (asked == query->end()) return choices[0].second;
  std::string right;
  for (size_t i = 0; i < kCount; ++i) {
    if (asked->second == choices[i].first) return choices[i].second;
    absl::StrAppend(&right, i == 0 ? "" : i + 1 < kCount ? ", " : " or ", choices[i].first);
  }
  return InvalidFields(
      {{name, absl::StrCat("is '", asked->second.substr(0, kMaxShownName), "'; must be ", right)}});
}

}  // namespace

absl::StatusOr<VideoPage> ParseVideoPage(std::string_view text) {
  const absl::StatusOr<Query> query = ParseQuery(text);
  if (!query.ok()) return query.status();
  if (absl::Status status = CheckQueryNames(*query, {"after", "limit", "order"}); !status.ok()) {
    return status;
  }
  VideoPage page;
  std::vector<FieldViolation> violations;
  if (const auto after = query->find("after"); after != query->end()) {
    page.after = JobNameOf(after->second);
    if (!page.after.has_value()) {
      violations.push_back({"after", "must be the id of a video, such as video_0123456789abcdef"});
    }
  }
  if (const auto limit = query->find("limit"); limit != query->end()) {
    if (!absl::SimpleAtoi(limit->second, &page.limit) || page.limit < 1 || page.limit > kMaxLimit) {
      violations.push_back({"limit", absl::StrCat("must be a whole number from 1 to ", kMaxLimit)});
    }
  }
  if (const auto order = query->find("order"); order != query->end()) {
    page.descending = order->second == "desc";
    if (!page.descending && order->second != "asc") {
      violations.push_back({"order", "must be asc or desc"});
    }
  }
  if (!violations.empty()) return InvalidFields(violations);
  return page;
}

absl::StatusOr<ContentVariant> ParseContentQuery(std::string_view text) {
  constexpr std::pair<const char*, ContentVariant> kVariants[] = {
      {"video", ContentVariant::kVideo},
      {"thumbnail", ContentVariant::kThumbnail},
      {"spritesheet", ContentVariant::kSpritesheet},
      {"live", ContentVariant::kLive}};
  return ParseChoice(text, "variant", kVariants);
}

absl::StatusOr<ReportFormat> ParseReportQuery(std::string_view text) {
  constexpr std::pair<const char*, ReportFormat> kFormats[] = {
      {"html", ReportFormat::kHtml},
      {"text", ReportFormat::kText},
      {"markdown", ReportFormat::kMarkdown},
      {"json", ReportFormat::kJson}};
  return ParseChoice(text, "format", kFormats);
}

absl::StatusOr<EventsQuery> ParseEventsQuery(const HttpHead& head) {
  const absl::StatusOr<Query> query = ParseQuery(head.query);
  if (!query.ok()) return query.status();
  if (absl::Status status = CheckQueryNames(*query, {"after", "previews"}); !status.ok()) {
    return status;
  }
  EventsQuery events;
  std::vector<FieldViolation> violations;
  const auto take_after = [&](const char* name, std::string_view text) {
    int64_t sequence = 0;
    if (absl::SimpleAtoi(std::string(text), &sequence) && sequence >= 0) {
      events.after = sequence;
    } else {
      violations.push_back(
          {name, "must be the id of an event of this video, a whole number from 0"});
    }
  };
  const std::string_view last = head.First("last-event-id");
  if (const auto after = query->find("after"); !last.empty()) {
    take_after("Last-Event-ID", last);
  } else if (after != query->end()) {
    take_after("after", after->second);
  }
  if (const auto previews = query->find("previews"); previews != query->end()) {
    events.previews = previews->second == "true";
    if (!events.previews && previews->second != "false") {
      violations.push_back({"previews", "must be true or false"});
    }
  }
  if (!violations.empty()) return InvalidFields(violations);
  return events;
}

}  // namespace wan::server
