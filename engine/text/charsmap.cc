#include "engine/text/charsmap.h"

#include <unicode/locid.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wan {
namespace {

// Each unit of the double array (github.com/s-yata/darts-clone) has the label of the edge that
// leads to it, whether a key ends here, and the offset of its children. The unit at the end of a
// key has the key's value.
uint32_t Label(uint32_t unit) { return unit & 0x800000FF; }
bool EndsKey(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t Offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }
uint32_t Value(uint32_t unit) { return unit & 0x7FFFFFFF; }

struct CloseText {
  void operator()(UText* text) const { utext_close(text); }
};

}  // namespace

absl::StatusOr<Charsmap> Charsmap::Parse(std::string_view compiled) {
  Charsmap map;
  UErrorCode error = U_ZERO_ERROR;
  map.graphemes_.reset(icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), error));
  if (U_FAILURE(error)) {
    return absl::InternalError(
        absl::StrCat("ICU has no rules for grapheme boundaries: ", u_errorName(error)));
  }
  if (compiled.empty()) return map;
  uint32_t trie_bytes = 0;
  if (compiled.size() >= sizeof(trie_bytes)) {
    std::memcpy(&trie_bytes, compiled.data(), sizeof(trie_bytes));
    compiled.remove_prefix(sizeof(trie_bytes));
  }
  if (trie_bytes == 0 || trie_bytes % sizeof(uint32_t) != 0 || trie_bytes >= compiled.size()) {
    return absl::DataLossError(absl::StrCat("normalization rules of ", compiled.size(),
                                            " bytes cannot hold a trie of ", trie_bytes, " bytes"));
  }
  if (compiled.back() != '\0') {
    return absl::DataLossError("normalization rules do not end with a zero byte");
  }
  map.trie_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(map.trie_.data(), compiled.data(), trie_bytes);
  map.replacements_ = compiled.substr(trie_bytes);
  return map;
}

std::optional<std::string_view> Charsmap::FindPrefix(std::string_view text) const {
  if (trie_.empty()) return std::nullopt;
  uint32_t node = Offset(trie_[0]);
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    node ^= byte;
    // In a damaged file, offsets may point anywhere, so check them.
    if (byte == 0 || node >= trie_.size() || Label(trie_[node]) != byte) return std::nullopt;
    const bool ends_key = EndsKey(trie_[node]);
    node ^= Offset(trie_[node]);
    if (!ends_key) continue;
    if (node >= trie_.size() || Value(trie_[node]) >= replacements_.size()) return std::nullopt;
    return std::string_view(replacements_.c_str() + Value(trie_[node]));
  }
  return std::nullopt;
}

void Charsmap::AppendNormalized(std::string_view grapheme, std::string& out) const {
  constexpr size_t kWholeBelow = 6;
  if (grapheme.size() < kWholeBelow) {
    if (const auto replacement = FindPrefix(grapheme)) {
      out.append(*replacement);
      return;
    }
  }
  const auto size = static_cast<int32_t>(grapheme.size());
  for (int32_t next = 0; next < size;) {
    const int32_t start = next;
    UChar32 code_point;
    U8_NEXT(grapheme.data(), next, size, code_point);
    const std::string_view character =
        code_point < 0 ? "\uFFFD" : grapheme.substr(start, next - start);
    out.append(FindPrefix(character).value_or(character));
  }
}

std::string Charsmap::Normalize(std::string_view utf8) const {
  std::string out;
  out.reserve(utf8.size());
  UErrorCode error = U_ZERO_ERROR;
  const std::unique_ptr<UText, CloseText> text(
      utext_openUTF8(nullptr, utf8.data(), static_cast<int64_t>(utf8.size()), &error));
  const std::unique_ptr<icu::BreakIterator> graphemes(graphemes_->clone());
  graphemes->setText(text.get(), error);
  int32_t start = graphemes->first();
  for (int32_t end = graphemes->next(); end != icu::BreakIterator::DONE; end = graphemes->next()) {
    AppendNormalized(utf8.substr(start, end - start), out);
    start = end;
  }
  return out;
}

}  // namespace wan
