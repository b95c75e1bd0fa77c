#include "engine/text/mark_order.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace wan {
namespace {

// The length of the longest run of marks that OrderMarks leaves to ICU. In real texts, a letter has
// far fewer.
constexpr size_t kLongRun = 32;

struct Mark {
  char32_t character;
  uint8_t combining_class;  // the mark's combining class, which is not 0
};

// Appends the marks into which `c` decomposes. If `c` does not consist of marks, returns false and
// leaves `marks` unchanged.
bool AppendMarks(const icu::Normalizer2& nfc, char32_t c, std::vector<Mark>& marks) {
  const auto code_point = static_cast<UChar32>(c);
  if (u_getIntPropertyValue(code_point, UCHAR_LEAD_CANONICAL_COMBINING_CLASS) == 0) return false;
  icu::UnicodeString parts;
  // Some marks decompose into two marks.
  if (!nfc.getDecomposition(code_point, parts)) parts.setTo(code_point);
  const size_t before = marks.size();
  for (int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1)) {
    const UChar32 part = parts.char32At(i);
    const uint8_t combining_class = u_getCombiningClass(part);
    if (combining_class == 0) {
      marks.resize(before);
      return false;
    }
    marks.push_back({static_cast<char32_t>(part), combining_class});
  }
  return true;
}

// Appends the marks to the text, sorted stably by class.
void AppendInOrder(const std::vector<Mark>& marks, std::u32string& out) {
  std::array<size_t, 256> place = {};  // for each class, the position of its next mark
  for (const Mark& mark : marks) ++place[mark.combining_class];
  size_t next = out.size();
  for (size_t& start : place) {
    const size_t count = start;
    start = next;
    next += count;
  }
  out.resize(next);
  for (const Mark& mark : marks) out[place[mark.combining_class]++] = mark.character;
}

}  // namespace

std::u32string OrderMarks(std::u32string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* const nfc = icu::Normalizer2::getNFCInstance(error);
  std::u32string out;
  out.reserve(text.size());
  if (U_FAILURE(error)) return out.append(text);
  std::vector<Mark> marks;
  for (size_t at = 0; at < text.size();) {
    marks.clear();
    const size_t first = at;
    while (at < text.size() && AppendMarks(*nfc, text[at], marks)) ++at;
    if (marks.size() > kLongRun) {
      AppendInOrder(marks, out);
    } else {
      out.append(text.substr(first, at - first));
    }
    if (at < text.size()) out.push_back(text[at++]);
  }
  return out;
}

}  // namespace wan
