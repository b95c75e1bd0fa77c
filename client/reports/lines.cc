#include "client/reports/lines.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace wan::client::reports {
namespace {

bool BeginsCodePoint(char c) { return (c & 0xC0) != 0x80; }

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t space = std::min(text.find(' ', at), text.size());
    if (space > at) words.push_back(text.substr(at, space - at));
    at = space + 1;
  }
  return words;
}

// Whether Markdown would read a line that begins with this word as a list, a heading or a rule.
bool IsMark(const std::string& word) {
  if (word.find_first_not_of("-+=#") == std::string::npos) return true;
  const size_t digits = word.find_first_not_of("0123456789");
  return digits != 0 && digits + 1 == word.size() && (word.back() == '.' || word.back() == ')');
}

// Returns how many bytes the first `columns` code points have.
size_t BytesOf(const std::string& text, size_t columns) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if (BeginsCodePoint(text[at]) && columns-- == 0) break;
  }
  return at;
}

// Whether a word may be cut between its bytes at - 1 and at.
bool MayCut(std::string_view word, size_t at) {
  constexpr std::string_view kMarks = "_/=,:-";
  return kMarks.find(word[at - 1]) != std::string_view::npos || word[at] == '(';
}

// Cuts at most `columns` off the front of a longer word, if possible at a mark.
std::string CutOff(std::string& word, size_t columns) {
  const size_t most = BytesOf(word, columns);
  size_t bytes = most;
  while (bytes > 0 && !MayCut(word, bytes)) --bytes;
  if (bytes == 0) bytes = most;
  std::string part = word.substr(0, bytes);
  word.erase(0, bytes);
  return part;
}

}  // namespace

size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCodePoint));
}

std::string Wrapped(const std::string& text, const std::string& first, const std::string& rest,
                    size_t columns) {
  if (Width(first) + Width(text) <= columns) return absl::StrCat(first, text, "\n");
  std::string out, line = first;
  bool empty = true;
  for (const std::string& word : Words(text)) {
    if (!empty && Width(line) + 1 + Width(word) > columns && !IsMark(word)) {
      absl::StrAppend(&out, line, "\n");
      line = rest;
      empty = true;
    }
    absl::StrAppend(&line, empty ? "" : " ", word);
    empty = false;
  }
  absl::StrAppend(&out, line, "\n");
  return out;
}

std::vector<std::string> CellLines(const std::string& text, size_t columns) {
  if (Width(text) <= columns) return {text};
  std::vector<std::string> lines(1);
  for (std::string& word : Words(text)) {
    if (!lines.back().empty() && Width(lines.back()) + 1 + Width(word) > columns) {
      lines.emplace_back();
    }
    while (Width(word) > columns) {
      lines.back() = CutOff(word, columns);
      lines.emplace_back();
    }
    absl::StrAppend(&lines.back(), lines.back().empty() ? "" : " ", word);
  }
  return lines;
}

size_t LongestWord(const std::string& text) {
  size_t longest = 0;
  for (const std::string& word : Words(text)) longest = std::max(longest, Width(word));
  return longest;
}

size_t LongestPiece(const std::string& text) {
  size_t longest = 0;
  for (const std::string& word : Words(text)) {
    size_t start = 0;
    for (size_t at = 1; at <= word.size(); ++at) {
      if (at < word.size() && !MayCut(word, at)) continue;
      longest = std::max(longest, Width(word.substr(start, at - start)));
      start = at;
    }
  }
  return longest;
}

}  // namespace wan::client::reports
