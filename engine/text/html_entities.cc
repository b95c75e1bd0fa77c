#include "engine/text/html_entities.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace wan {
namespace {

struct Entity {
  std::string_view name;
  char32_t first;
  char32_t second;  // second character; 0 for most entities
};

// The entities, sorted by the bytes of their names.
constexpr Entity kEntities[] = {
#include "engine/text/html_entities.inc"
};

// The characters of windows-1252 with the codes 0x80 to 0x9F.
constexpr std::array<char16_t, 32> kWindows1252 = {
    0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178};

constexpr char32_t kReplacement = 0xFFFD;
constexpr char32_t kMaxCodePoint = 0x10FFFF;
constexpr size_t kMaxNameLength = 32;

// Returns the value of the digit `c` in base `base`; -1 if `c` is not a digit in that base.
int DigitValue(char32_t c, int base) {
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0');
  if (base == 16 && c >= 'a' && c <= 'f') return static_cast<int>(c - 'a') + 10;
  if (base == 16 && c >= 'A' && c <= 'F') return static_cast<int>(c - 'A') + 10;
  return -1;
}

void AppendNumbered(uint32_t number, std::u32string& out) {
  const bool surrogate = number >= 0xD800 && number <= 0xDFFF;
  if (number == 0 || surrogate || number > kMaxCodePoint) {
    out.push_back(kReplacement);
    return;
  }
  if (number >= 0x80 && number <= 0x9F) {
    out.push_back(Windows1252FromC1(number));
    return;
  }
  const bool control =
      (number < 0x20 && number != '\t' && number != '\n' && number != '\f' && number != '\r') ||
      number == 0x7F;
  const bool noncharacter = (number >= 0xFDD0 && number <= 0xFDEF) || (number & 0xFFFE) == 0xFFFE;
  if (!control && !noncharacter) out.push_back(number);
}

// Each of the following functions takes the text after '&', appends the value of the reference, and
// returns the length of the reference. Returns 0 if the text does not begin with a reference.

size_t ReadNumeric(std::u32string_view text, std::u32string& out) {
  if (text.empty() || text[0] != '#') return 0;
  const bool hexadecimal = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
  const int base = hexadecimal ? 16 : 10;
  const size_t digits_start = hexadecimal ? 2 : 1;
  size_t end = digits_start;
  uint32_t number = 0;
  for (; end < text.size(); ++end) {
    const int digit = DigitValue(text[end], base);
    if (digit < 0) break;
    // A number may have any length; all numbers beyond Unicode mean the same.
    number = std::min<uint32_t>(number * base + digit, kMaxCodePoint + 1);
  }
  if (end == digits_start) return 0;
  AppendNumbered(number, out);
  if (end < text.size() && text[end] == ';') ++end;
  return end;
}

size_t ReadNamed(std::u32string_view text, std::u32string& out) {
  constexpr std::u32string_view kEndsName = U"\t\n\f <&#;";
  size_t end = std::min({text.find_first_of(kEndsName), text.size(), kMaxNameLength});
  if (end == 0) return 0;
  if (end < text.size() && text[end] == ';') ++end;
  const std::u32string_view name = text.substr(0, end);

  // Names consist of ASCII characters, so only the part before the first other character can match.
  const auto other = std::find_if(name.begin(), name.end(), [](char32_t c) { return c > 0x7F; });
  const std::string ascii(name.begin(), other);
  for (size_t length = ascii.size(); length >= 2; --length) {
    if (const auto value = FindHtmlEntity(std::string_view(ascii).substr(0, length))) {
      out.append(*value).append(name.substr(length));
      return end;
    }
  }
  return 0;
}

}  // namespace

char32_t Windows1252FromC1(char32_t c1) { return kWindows1252[c1 - 0x80]; }

std::optional<std::u32string> FindHtmlEntity(std::string_view name) {
  const auto* found = std::lower_bound(
      std::begin(kEntities), std::end(kEntities), name,
      [](const Entity& entity, std::string_view key) { return entity.name < key; });
  if (found == std::end(kEntities) || found->name != name) return std::nullopt;
  std::u32string value(1, found->first);
  if (found->second != 0) value.push_back(found->second);
  return value;
}

std::u32string UnescapeHtml(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t ampersand = std::min(text.find(U'&'), text.size());
    out.append(text.substr(0, ampersand));
    text.remove_prefix(ampersand);
    if (text.empty()) break;
    text.remove_prefix(1);
    size_t used = ReadNumeric(text, out);
    if (used == 0) used = ReadNamed(text, out);
    if (used == 0) out.push_back(U'&');
    text.remove_prefix(used);
  }
  return out;
}

}  // namespace wan
