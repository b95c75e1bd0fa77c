#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/reports/render.h"

namespace wan::client::reports {
namespace {

constexpr size_t kLine = 80;

// Returns the number of code points; the text must be UTF-8.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string Padded(const std::string& text, size_t width, bool right) {
  const std::string space(width - std::min(width, Width(text)), ' ');
  return right ? space + text : text + space;
}

// Breaks a text into lines of at most kLine characters; lines after the first are indented.
std::string Wrapped(const std::string& text, const std::string& first, const std::string& rest) {
  std::string out, line = first;
  size_t at = 0;
  bool empty = true;
  while (at < text.size()) {
    const size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    at = space + 1;
    if (!empty && Width(line) + 1 + Width(word) > kLine) {
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

class Writer {
 public:
  std::string out;

  void operator()(const Paragraph& paragraph) {
    absl::StrAppend(&out, Wrapped(paragraph.text, "", ""), "\n");
  }
  void operator()(const Facts& facts) {
    size_t width = 0;
    for (const Fact& fact : facts.facts) width = std::max(width, Width(fact.name));
    for (const Fact& fact : facts.facts) {
      const bool measured = !std::holds_alternative<std::monostate>(fact.value);
      absl::StrAppend(&out, Padded(fact.name + ":", width + 2, false), CellText(fact.value),
                      measured && !fact.unit.empty() ? " " : "", measured ? fact.unit : "", "\n");
    }
    out += "\n";
  }
  void operator()(const List& list) {
    for (size_t i = 0; i < list.items.size(); ++i) {
      const std::string mark = list.ordered ? absl::StrCat(i + 1, ". ") : "- ";
      out += Wrapped(list.items[i], mark, std::string(mark.size(), ' '));
    }
    out += "\n";
  }
  void operator()(const Table& table) {
    const size_t columns = table.columns.size();
    std::vector<size_t> widths(columns);
    std::vector<bool> right(columns);
    for (size_t c = 0; c < columns; ++c) {
      widths[c] = Width(table.columns[c].title);
      for (const auto& row : table.rows) {
        widths[c] = std::max(widths[c], Width(CellText(row[c])));
        right[c] = right[c] || std::holds_alternative<Number>(row[c]);
      }
    }
    size_t total = 0;
    for (const size_t width : widths) total += width;
    total += columns > 0 ? 2 * (columns - 1) : 0;
    const auto add_row = [&](const std::vector<std::string>& cells) {
      std::string line;
      for (size_t c = 0; c < columns; ++c) {
        absl::StrAppend(&line, c > 0 ? "  " : "", Padded(cells[c], widths[c], right[c]));
      }
      line.erase(line.find_last_not_of(' ') + 1);
      absl::StrAppend(&out, line, "\n");
    };
    std::vector<std::string> cells;
    for (const Column& column : table.columns) cells.push_back(column.title);
    add_row(cells);
    absl::StrAppend(&out, std::string(total, '-'), "\n");
    for (const auto& row : table.rows) {
      cells.clear();
      for (const Cell& cell : row) cells.push_back(CellText(cell));
      add_row(cells);
    }
    if (!table.note.empty()) out += Wrapped(table.note, "", "");
    out += "\n";
  }
  void operator()(const Chart&) {}

  void Add(const Section& section, int depth) {
    if (section.title.empty()) {
      // there are only blocks here, without a title
    } else if (depth == 0 || depth == 1) {
      const std::string line(kLine, '=');
      absl::StrAppend(&out, line, "\n", section.title, "\n", line, "\n\n");
    } else if (depth == 2) {
      absl::StrAppend(&out, section.title, "\n", std::string(Width(section.title), '='), "\n\n");
    } else {
      absl::StrAppend(&out, "[", section.title, "]\n");
    }
    for (const Block& block : section.blocks) std::visit(*this, block);
    for (const Section& child : section.sections) Add(child, depth + 1);
  }
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

std::string RenderText(const Document& document) {
  Writer writer;
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
