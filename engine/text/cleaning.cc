#include "engine/text/cleaning.h"

#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/text/html_entities.h"
#include "engine/text/mark_order.h"
#include "engine/text/utf8.h"

namespace wan {
namespace {

using Text = std::u32string;
using TextView = std::u32string_view;

// A longer line is cleaned in pieces, as in the reference.
constexpr size_t kMaxSegment = 1'000'000;

struct Normalizers {
  const icu::Normalizer2* nfc;
  const icu::Normalizer2* nfkc;
};

absl::StatusOr<Normalizers> FindNormalizers() {
  UErrorCode error = U_ZERO_ERROR;
  const Normalizers found = {icu::Normalizer2::getNFCInstance(error),
                             icu::Normalizer2::getNFKCInstance(error)};
  if (U_FAILURE(error)) {
    return absl::InternalError(absl::StrCat("ICU has no normalization data: ", u_errorName(error)));
  }
  return found;
}

icu::UnicodeString ToUtf16(TextView text) {
  return icu::UnicodeString::fromUTF32(reinterpret_cast<const UChar32*>(text.data()),
                                       static_cast<int32_t>(text.size()));
}

void AppendUtf16(const icu::UnicodeString& utf16, Text& out) {
  for (int32_t i = 0; i < utf16.length(); i = utf16.moveIndex32(i, 1)) {
    out.push_back(static_cast<char32_t>(utf16.char32At(i)));
  }
}

Text Normalize(const icu::Normalizer2& form, const Text& text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::UnicodeString normalized = form.normalize(ToUtf16(text), error);
  // Normalization fails only if memory runs out. The unchanged text then ends the rounds below.
  if (U_FAILURE(error)) return text;
  Text out;
  out.reserve(text.size());
  AppendUtf16(normalized, out);
  return out;
}

// Returns the text in which each character c is replaced by what `append(c, out)` appends.
template <typename Append>
Text ReplaceEach(const Text& text, Append append) {
  Text out;
  out.reserve(text.size());
  for (const char32_t c : text) append(c, out);
  return out;
}

bool IsAsciiLower(char32_t c) { return c >= 'a' && c <= 'z'; }
bool IsAsciiUpper(char32_t c) { return c >= 'A' && c <= 'Z'; }
bool IsAsciiAlphanumeric(char32_t c) {
  return IsAsciiLower(c) || IsAsciiUpper(c) || (c >= '0' && c <= '9');
}

// Finds names such as "&EACUTE;". The reference accepts every lower-case name in upper case as
// well, with the upper-case value, unless HTML itself defines the upper-case name.
std::optional<Text> FindUpperCasedEntity(TextView reference) {
  std::string name;
  for (const char32_t c : reference.substr(1)) {
    if (IsAsciiLower(c)) return std::nullopt;
    name.push_back(static_cast<char>(IsAsciiUpper(c) ? c - 'A' + 'a' : c));
  }
  const std::optional<Text> value = FindHtmlEntity(name);
  if (!value || UnescapeHtml(reference) != reference) return std::nullopt;
  Text upper;
  AppendUtf16(ToUtf16(*value).toUpper(icu::Locale::getRoot()), upper);
  return upper;
}

// `reference` is the text from '&' to ';'. Returns its value; nullopt if it must stay as it is.
std::optional<Text> FindEntity(TextView reference) {
  if (reference[1] == '#') {
    Text value = UnescapeHtml(reference);
    // If a ';' is left, either only a part was a number ("&#12a;"), or the value is ';'. Both kinds
    // of reference stay unchanged.
    if (value.find(U';') != Text::npos) return std::nullopt;
    return value;
  }
  if (auto value = FindHtmlEntity(std::string(reference.begin() + 1, reference.end())))
    return value;
  return FindUpperCasedEntity(reference);
}

void AppendC1AsWindows1252(char32_t c, Text& out) {
  out.push_back(c >= 0x80 && c <= 0x9F ? Windows1252FromC1(c) : c);
}

// Replaces ligatures and digraphs that differ from plain letters only in how they look. NFKC for
// all characters would change far more.
void AppendWithoutLigature(char32_t c, Text& out) {
  struct Ligature {
    char32_t from;
    TextView to;
  };
  static constexpr Ligature kLigatures[] = {
      {0x0132, U"IJ"},      {0x0133, U"ij"},      {0x0149, U"\u02BCn"}, {0x01C4, U"D\u017D"},
      {0x01C5, U"D\u017E"}, {0x01C6, U"d\u017E"}, {0x01C7, U"LJ"},      {0x01C8, U"Lj"},
      {0x01C9, U"lj"},      {0x01CA, U"NJ"},      {0x01CB, U"Nj"},      {0x01CC, U"nj"},
      {0x01F1, U"DZ"},      {0x01F2, U"Dz"},      {0x01F3, U"dz"},      {0xFB00, U"ff"},
      {0xFB01, U"fi"},      {0xFB02, U"fl"},      {0xFB03, U"ffi"},     {0xFB04, U"ffl"},
      {0xFB05, U"\u017Ft"}, {0xFB06, U"st"},
  };
  for (const Ligature& ligature : kLigatures) {
    if (c == ligature.from) {
      out.append(ligature.to);
      return;
    }
  }
  out.push_back(c);
}

Text NormalizeWidth(const Text& text, const Normalizers& normalizers) {
  return ReplaceEach(text, [&](char32_t c, Text& out) {
    if (c == 0x3000) {
      out.push_back(U' ');
    } else if (c >= 0xFF01 && c <= 0xFFEF) {
      // Normalize one character at a time, because NFKC of the whole text would also compose and
      // reorder characters.
      out.append(Normalize(*normalizers.nfkc, Text(1, c)));
    } else {
      out.push_back(c);
    }
  });
}

void AppendUncurled(char32_t c, Text& out) {
  if (c >= 0x201C && c <= 0x201F) {
    out.push_back(U'"');
  } else if ((c >= 0x2018 && c <= 0x201B) || c == 0x02BC) {
    out.push_back(U'\'');
  } else {
    out.push_back(c);
  }
}

Text NormalizeLineEnds(const Text& text) {
  Text out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char32_t c = text[i];
    if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    const bool ends_line = c == '\r' || c == 0x0085 || c == 0x2028 || c == 0x2029;
    out.push_back(ends_line ? U'\n' : c);
  }
  return out;
}

// Removes terminal escapes, which set colours and move the cursor: ESC '[', then decimal digits of
// any script and ';', then one ASCII letter.
Text RemoveTerminalEscapes(const Text& text) {
  Text out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == 0x1B && i + 1 < text.size() && text[i + 1] == '[') {
      size_t end = i + 2;
      while (end < text.size() &&
             (text[end] == ';' || u_isdigit(static_cast<UChar32>(text[end])))) {
        ++end;
      }
      if (end < text.size() && (IsAsciiLower(text[end]) || IsAsciiUpper(text[end]))) {
        i = end;
        continue;
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

// Returns whether a control character is to be removed. Tabs, ends of lines, zero-width characters
// and bidi characters stay.
bool IsRemovedControl(char32_t c) {
  const bool c0 = c < 0x20 && c != '\t' && c != '\n' && c != '\f' && c != '\r';
  const bool deprecated_format = c >= 0x206A && c <= 0x206F;
  const bool annotation = c >= 0xFFF9 && c <= 0xFFFC;
  return c0 || c == 0x7F || deprecated_format || c == 0xFEFF || annotation;
}

void AppendUnlessControl(char32_t c, Text& out) {
  if (!IsRemovedControl(c)) out.push_back(c);
}

// Applies all rules for single characters, in the reference's order.
Text CleanCharacters(const Text& text, const Normalizers& normalizers) {
  Text out = ReplaceEach(text, AppendC1AsWindows1252);
  out = ReplaceEach(out, AppendWithoutLigature);
  out = NormalizeWidth(out, normalizers);
  out = ReplaceEach(out, AppendUncurled);
  out = NormalizeLineEnds(out);
  out = RemoveTerminalEscapes(out);
  out = ReplaceEach(out, AppendUnlessControl);
  return Normalize(*normalizers.nfc, OrderMarks(out));
}

// Returns the beginning of the entity whose ';' is the last character of the text. An entity
// consists of '&', an optional '#', 1 to 24 letters or digits, and ';'. Returns npos if no entity
// begins at or after `from`.
size_t FindEntityStart(const Text& text, size_t from) {
  constexpr size_t kMaxName = 24;
  const size_t end = text.size() - 1;
  size_t start = end;
  while (start > from && end - start < kMaxName && IsAsciiAlphanumeric(text[start - 1])) --start;
  if (start == end) return Text::npos;
  if (start > from && text[start - 1] == '#') --start;
  return start > from && text[start - 1] == '&' ? start - 1 : Text::npos;
}

// Resolves the entities in the text once; entities in the result are not resolved again.
Text ResolveEntities(const Text& text) {
  Text out;
  out.reserve(text.size());
  size_t resolved = 0;
  for (const char32_t c : text) {
    out.push_back(c);
    if (c != ';') continue;
    const size_t start = FindEntityStart(out, resolved);
    if (start == Text::npos) continue;
    if (const auto value = FindEntity(TextView(out).substr(start))) {
      out.replace(start, Text::npos, *value);
      resolved = out.size();
    }
  }
  return out;
}

// Resolves nested entities ("&amp;amp;lt;", "&am&#112;;") in one pass. The function cleans the
// characters of an inner entity before they become part of an outer entity. The reference needs one
// round for each level of nesting. The reference's result is the same, because entities never
// overlap, and because cleaning a complete entity changes nothing. The exception is terminal
// escapes, which vanish in the first round. So the first round resolves only one level.
Text ResolveNestedEntities(const Text& text, const Normalizers& normalizers) {
  Text out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    out.push_back(c);
    // A value may be ';' and thereby complete an outer entity.
    while (!out.empty() && out.back() == ';') {
      const size_t start = FindEntityStart(out, 0);
      if (start == Text::npos) break;
      const auto value = FindEntity(TextView(out).substr(start));
      if (!value) break;
      out.replace(start, Text::npos, CleanCharacters(*value, normalizers));
    }
  }
  return out;
}

// A later step may make an earlier step necessary again. For example, a full-width '&' becomes '&',
// and an accent joins its letter once a control character between them is removed. So the function
// repeats all steps until nothing changes.
Text CleanSegment(Text text, bool resolve_entities, const Normalizers& normalizers) {
  for (int round = 0;; ++round) {
    Text next = text;
    if (resolve_entities) {
      next = round == 0 ? ResolveEntities(text) : ResolveNestedEntities(text, normalizers);
    }
    next = CleanCharacters(next, normalizers);
    if (next == text) return text;
    text = std::move(next);
  }
}

Text CleanSegments(TextView text, const Normalizers& normalizers) {
  Text out;
  out.reserve(text.size());
  bool resolve_entities = true;
  while (!text.empty()) {
    const size_t line_end = text.find(U'\n');
    const size_t line = line_end == TextView::npos ? text.size() : line_end + 1;
    const TextView segment = text.substr(0, std::min(line, kMaxSegment));
    // After a literal '<' the text may be HTML, in which "&lt;" and '<' have different meanings.
    resolve_entities = resolve_entities && segment.find(U'<') == TextView::npos;
    out.append(CleanSegment(Text(segment), resolve_entities, normalizers));
    text.remove_prefix(segment.size());
  }
  return out;
}

Text CollapseWhiteSpace(const Text& text) {
  Text out;
  out.reserve(text.size());
  bool gap = false;
  for (const char32_t c : text) {
    if (u_isUWhiteSpace(static_cast<UChar32>(c))) {
      gap = true;
      continue;
    }
    if (gap && !out.empty()) out.push_back(U' ');
    gap = false;
    out.push_back(c);
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> CleanPrompt(std::string_view utf8) {
  const absl::StatusOr<Text> decoded = DecodeUtf8(utf8);
  if (!decoded.ok()) return decoded.status();
  const absl::StatusOr<Normalizers> normalizers = FindNormalizers();
  if (!normalizers.ok()) return normalizers.status();

  Text text = CleanSegments(*decoded, *normalizers);
  text = UnescapeHtml(UnescapeHtml(text));
  return EncodeUtf8(CollapseWhiteSpace(text));
}

}  // namespace wan
