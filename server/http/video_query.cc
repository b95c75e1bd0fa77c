#include "server/http/video_query.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "server/http/form.h"
#include "server/http/video_object.h"

namespace wan::server {
namespace {

constexpr int kMaxLimit = 100;

}  // namespace

absl::Status CheckQueryNames(const std::map<std::string, std::string>& query,
                             const std::vector<std::string>& known) {
  for (const auto& [name, value] : query) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return InvalidFields({{name.substr(0, 100),
                           known.empty() ? std::string("is not a parameter of this request")
                                         : absl::StrCat("is not a parameter of this request, which "
                                                        "takes ",
                                                        absl::StrJoin(known, ", "))}});
  }
  return absl::OkStatus();
}

absl::StatusOr<VideoPage> ParseVideoPage(std::string_view text) {
  absl::StatusOr<std::map<std::string, std::string>> query = ParseQuery(text);
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

}  // namespace wan::server
