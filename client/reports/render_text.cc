#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/reports/lines.h"
#include "client/reports/render.h"

namespace wan::client::reports {
namespace {

// Paragraphs are narrower than tables, so that they are easy to read.
constexpr size_t kLine = 80;
// The text between two columns of a table.
constexpr size_t kGap = 2;
// A table with a higher row is shown as records, which are easier to read.
constexpr size_t kHighestRow = 8;

std::string Padded(const std::string& text, size_t width, bool right) {
  const std::string space(width - std::min(width, Width(text)), ' ');
  return right ? space + text : text + space;
}

// The titles of a table, or one of its rows.
using TextRow = std::vector<std::string>;

size_t Sum(const std::vector<size_t>& widths) {
  size_t sum = widths.empty() ? 0 : kGap * (widths.size() - 1);
  for (const size_t width : widths) sum += width;
  return sum;
}

// Makes the widest columns narrower, but none narrower than its least width, until a line has at
// most `line` columns.
void Narrow(std::vector<size_t>& widths, const std::vector<size_t>& least, size_t line) {
  while (Sum(widths) > line) {
    size_t widest = widths.size();
    for (size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] <= least[c]) continue;
      if (widest == widths.size() || widths[c] > widths[widest]) widest = c;
    }
    if (widest == widths.size()) return;
    --widths[widest];
  }
}

// Returns widths of the columns with which a row fits into `line` characters. Never breaks numbers;
// breaks words if a line would be longer than kWidestLine.
std::vector<size_t> WidthsOf(const TextRow& titles, const std::vector<TextRow>& rows,
                             const std::vector<bool>& numbers, size_t line) {
  const size_t columns = titles.size();
  std::vector<size_t> widths(columns), words(columns), pieces(columns), least(columns, 1);
  for (size_t c = 0; c < columns; ++c) {
    widths[c] = Width(titles[c]);
    words[c] = LongestWord(titles[c]);
    pieces[c] = LongestPiece(titles[c]);
    for (const TextRow& row : rows) {
      const size_t width = Width(row[c]);
      widths[c] = std::max(widths[c], width);
      words[c] = std::max(words[c], numbers[c] ? width : LongestWord(row[c]));
      pieces[c] = std::max(pieces[c], numbers[c] ? width : LongestPiece(row[c]));
      if (numbers[c]) least[c] = std::max(least[c], width);
    }
  }
  Narrow(widths, words, line);
  Narrow(widths, pieces, line);
  Narrow(widths, least, kWidestLine);
  return widths;
}

class Writer {
 public:
  explicit Writer(size_t columns)
      : line_(std::min(columns, kWidestLine)), text_line_(std::min(columns, kLine)) {}

  std::string out;

  void operator()(const Paragraph& paragraph) {
    absl::StrAppend(&out, Wrapped(paragraph.text, "", "", text_line_), "\n");
  }
  void operator()(const Facts& facts) {
    size_t width = 0;
    for (const Fact& fact : facts.facts) width = std::max(width, Width(fact.name));
    for (const Fact& fact : facts.facts) {
      const bool measured = !std::holds_alternative<std::monostate>(fact.value);
      out += Wrapped(absl::StrCat(CellText(fact.value), measured && !fact.unit.empty() ? " " : "",
                                  measured ? fact.unit : ""),
                     Padded(fact.name + ":", width + 2, false), std::string(width + 2, ' '), line_);
    }
    out += "\n";
  }
  void operator()(const List& list) {
    for (size_t i = 0; i < list.items.size(); ++i) {
      const std::string mark = list.ordered ? absl::StrCat(i + 1, ". ") : "- ";
      out += Wrapped(list.items[i], mark, std::string(mark.size(), ' '), text_line_);
    }
    out += "\n";
  }
  void operator()(const Table& table) {
    TextRow titles;
    for (const Column& column : table.columns) titles.push_back(column.title);
    std::vector<TextRow> rows;
    std::vector<bool> numbers(titles.size());
    for (const auto& cells : table.rows) {
      TextRow& row = rows.emplace_back();
      for (size_t c = 0; c < cells.size(); ++c) {
        row.push_back(CellText(cells[c]));
        numbers[c] = numbers[c] || std::holds_alternative<Number>(cells[c]);
      }
    }
    const std::vector<size_t> widths = WidthsOf(titles, rows, numbers, line_);
    const bool high = std::any_of(rows.begin(), rows.end(), [&](const TextRow& row) {
      return HeightOf(row, widths) > kHighestRow;
    });
    if (high || Sum(widths) > line_) {
      for (size_t i = 0; i < rows.size(); ++i) AddRecord(titles, rows[i], table.rows[i]);
    } else {
      AddRow(titles, widths, numbers);
      absl::StrAppend(&out, std::string(Sum(widths), '-'), "\n");
      for (const TextRow& row : rows) AddRow(row, widths, numbers);
    }
    if (!table.note.empty()) out += Wrapped(table.note, "", "", text_line_);
    out += "\n";
  }
  void operator()(const Chart&) {}
  void operator()(const Pictures&) {}

  void Add(const Section& section, int depth) {
    if (section.title.empty()) {
      // a section without a title gets no heading
    } else if (depth == 0 || depth == 1) {
      const std::string line(text_line_, '=');
      absl::StrAppend(&out, line, "\n", section.title, "\n", line, "\n\n");
    } else if (depth == 2) {
      absl::StrAppend(&out, section.title, "\n", std::string(Width(section.title), '='), "\n\n");
    } else {
      absl::StrAppend(&out, "[", section.title, "]\n");
    }
    for (const Block& block : section.blocks) std::visit(*this, block);
    for (const Section& child : section.sections) Add(child, depth + 1);
  }

 private:
  static size_t HeightOf(const TextRow& row, const std::vector<size_t>& widths) {
    size_t height = 0;
    for (size_t c = 0; c < row.size(); ++c) {
      height = std::max(height, CellLines(row[c], std::max<size_t>(1, widths[c])).size());
    }
    return height;
  }

  // Adds a row as its first cell and a line "Title: value" for each other cell that has a value.
  void AddRecord(const TextRow& titles, const TextRow& row, const std::vector<Cell>& cells) {
    size_t width = 0;
    for (const std::string& title : titles) width = std::max(width, Width(title));
    out += Wrapped(row.front(), "", "", line_);
    for (size_t c = 1; c < row.size(); ++c) {
      if (std::holds_alternative<std::monostate>(cells[c])) continue;
      out += Wrapped(row[c], absl::StrCat("  ", Padded(titles[c] + ":", width + 2, false)),
                     std::string(width + 4, ' '), line_);
    }
  }

  // Adds a row that has as many lines as its longest cell.
  void AddRow(const TextRow& row, const std::vector<size_t>& widths,
              const std::vector<bool>& numbers) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 0;
    for (size_t c = 0; c < row.size(); ++c) {
      cells.push_back(CellLines(row[c], std::max<size_t>(1, widths[c])));
      height = std::max(height, cells.back().size());
    }
    for (size_t i = 0; i < height; ++i) {
      std::string line;
      for (size_t c = 0; c < cells.size(); ++c) {
        const std::string text = i < cells[c].size() ? cells[c][i] : "";
        absl::StrAppend(&line, c > 0 ? std::string(kGap, ' ') : "",
                        Padded(text, widths[c], numbers[c]));
      }
      line.erase(line.find_last_not_of(' ') + 1);
      absl::StrAppend(&out, line, "\n");
    }
  }

  const size_t line_;
  const size_t text_line_;
};

// Removes control characters, including U+0080 to U+009F, so that text from a server cannot control
// the terminal.
std::string WithoutControls(const std::string& text) {
  std::string clean;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = text[i];
    const unsigned char next = i + 1 < text.size() ? text[i + 1] : 0xFF;
    const bool two_bytes = c == 0xC2 && next < 0xA0 && next >= 0x80;
    clean += ((c < 0x20 && c != '\n') || c == 0x7F || two_bytes) ? '?' : text[i];
    if (two_bytes) ++i;
  }
  return clean;
}

void Collect(const Section& section, std::vector<const Chart*>& charts) {
  for (const Block& block : section.blocks) {
    if (const auto* chart = std::get_if<Chart>(&block)) charts.push_back(chart);
  }
  for (const Section& child : section.sections) Collect(child, charts);
}

}  // namespace

std::string RenderText(const Document& document, size_t columns) {
  Writer writer(columns);
  writer.Add(document, 0);
  while (writer.out.ends_with("\n\n")) writer.out.pop_back();
  return WithoutControls(writer.out);
}

std::vector<const Chart*> ChartsOf(const Document& document) {
  std::vector<const Chart*> charts;
  Collect(document, charts);
  return charts;
}

}  // namespace wan::client::reports
