#include "server/conversion/page_token.h"

#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/api/errors.h"

namespace wan::server {
namespace {

constexpr absl::string_view kVersion = "1";
constexpr size_t kMaxTokenBytes = 128;

// One bit for each state, so that order and repetition do not matter.
uint32_t MaskOf(const std::vector<wan::v1::JobState>& states) {
  uint32_t mask = 0;
  for (const wan::v1::JobState state : states) mask |= uint32_t{1} << static_cast<int>(state);
  return mask;
}

absl::Status BadToken(const char* what) { return InvalidFields({{"page_token", what}}); }

}  // namespace

std::string MakePageToken(int64_t before, const std::vector<wan::v1::JobState>& states) {
  return absl::WebSafeBase64Escape(absl::StrCat(kVersion, ",", before, ",", MaskOf(states)));
}

absl::StatusOr<int64_t> ParsePageToken(const std::string& token,
                                       const std::vector<wan::v1::JobState>& states) {
  std::string text;
  int64_t before = 0;
  uint32_t mask = 0;
  if (token.size() <= kMaxTokenBytes && absl::WebSafeBase64Unescape(token, &text)) {
    const std::vector<std::string> parts = absl::StrSplit(text, ',');
    if (parts.size() == 3 && parts[0] == kVersion && absl::SimpleAtoi(parts[1], &before) &&
        before > 0 && absl::SimpleAtoi(parts[2], &mask)) {
      if (mask == MaskOf(states)) return before;
      return BadToken(
          "belongs to a list of other states; repeat the states of the request that returned it");
    }
  }
  return BadToken("is not a token of ListJobs; must be the next_page_token of the previous page");
}

}  // namespace wan::server
