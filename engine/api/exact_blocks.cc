#include "engine/api/exact_blocks.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wan {
namespace {

constexpr std::string_view kLast = "last";
// More blocks than any transformer has.
constexpr int kMostBlocks = 1000;

std::optional<int> ParseBlock(std::string_view text) {
  int block = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, block);
  if (error != std::errc() || parsed != end || block < 0 || block >= kMostBlocks) {
    return std::nullopt;
  }
  return block;
}

}  // namespace

absl::StatusOr<ExactBlocks> ExactBlocks::Parse(std::string_view text) {
  ExactBlocks blocks;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view entry = text.substr(begin, end - begin);
    begin = end + 1;
    if (entry == kLast) {
      blocks.ranges_.push_back({-1, -1});
      continue;
    }
    const size_t dash = std::min(entry.find('-'), entry.size());
    const std::optional<int> first = ParseBlock(entry.substr(0, dash));
    const std::optional<int> last =
        dash == entry.size() ? first : ParseBlock(entry.substr(dash + 1));
    if (!first.has_value() || !last.has_value() || *first > *last) {
      return absl::InvalidArgumentError(
          absl::StrCat("is '", std::string(text),
                       "'; must be numbers of blocks, ranges of them, and last, for example "
                       "0,4-5,last"));
    }
    blocks.ranges_.push_back({*first, *last});
  }
  return blocks;
}

std::string ExactBlocks::ToString() const {
  return absl::StrJoin(ranges_, ",", [](std::string* out, const Range& range) {
    absl::StrAppend(out, range.first < 0 ? std::string(kLast) : absl::StrCat(range.first));
    if (range.last > range.first) absl::StrAppend(out, "-", range.last);
  });
}

std::vector<int> ExactBlocks::In(int count) const {
  std::vector<int> blocks;
  for (int block = 0; block < count; ++block) {
    const bool found = std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
      if (range.first < 0) return block == count - 1;
      return range.first <= block && block <= range.last;
    });
    if (found) blocks.push_back(block);
  }
  return blocks;
}

}  // namespace wan
