// Breaks texts into lines; a text that fits into one line stays as it is. Widths are numbers of
// code points; texts must be UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace wan::client::reports {

// The longest line of text and Markdown files, except rows of Markdown's tables.
inline constexpr size_t kWidestLine = 120;

// Returns the number of code points.
size_t Width(const std::string& text);

// Breaks a text into lines of at most `columns`, each ending with a line end. The first one begins
// with `first`, the others with `rest`. A word that is longer than a line stays whole. No line
// after the first begins with a word that Markdown would read as a list, a heading or a rule.
std::string Wrapped(const std::string& text, const std::string& first, const std::string& rest,
                    size_t columns);

// Breaks the text of a table's cell into lines of at most `columns`, which must not be 0. A word
// that is longer is cut, after a mark such as '_' or before '(' if it has one.
std::vector<std::string> CellLines(const std::string& text, size_t columns);

// Returns the width of the longest word, and that of the longest part of a word between two marks.
size_t LongestWord(const std::string& text);
size_t LongestPiece(const std::string& text);

}  // namespace wan::client::reports
