#include "server/conversion/page_token.h"

#include <cstdint>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/api/errors.h"

namespace wan::server {
namespace {

constexpr absl::string_view kVersion = "2";
constexpr size_t kMaxTokenBytes = 256;

// Returns the FNV-1a hash of the list's name, to detect tokens of other lists. The hash need not be
// secure, because a forged token gains nothing.
std::string SealOf(std::string_view list) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : list) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return absl::StrCat(absl::Hex(hash));
}

absl::Status BadToken(const char* what) { return InvalidFields({{"page_token", what}}); }

}  // namespace

std::string MakePageToken(std::string_view place, std::string_view list) {
  return absl::WebSafeBase64Escape(
      absl::StrCat(kVersion, ",", SealOf(list), ",", std::string(place)));
}

absl::StatusOr<std::string> ParsePageToken(const std::string& token, std::string_view list) {
  std::string text;
  if (token.size() <= kMaxTokenBytes && absl::WebSafeBase64Unescape(token, &text)) {
    std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(',', 2));
    if (parts.size() == 3 && parts[0] == kVersion) {
      if (parts[1] == SealOf(list)) return std::move(parts[2]);
      return BadToken(
          "belongs to another list; send it with the filter, order and states that it was made "
          "for");
    }
  }
  return BadToken("is not a next_page_token of this list");
}

}  // namespace wan::server
