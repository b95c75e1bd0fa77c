#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/reports/lines.h"
#include "client/reports/render.h"

namespace wan::client::reports {
namespace {

// Escapes characters with a meaning in Markdown or HTML, and line ends, which would end the row of
// a table.
std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"},
                                    {"|", "\\|"},
                                    {"<", "&lt;"},
                                    {">", "&gt;"},
                                    {"*", "\\*"},
                                    {"_", "\\_"},
                                    {"`", "\\`"},
                                    {"\n", " "},
                                    {"\r", " "}});
}

class Writer {
 public:
  explicit Writer(const std::function<std::string(const Chart&)>& chart_path)
      : chart_path_(chart_path) {}

  std::string out;

  void operator()(const Paragraph& paragraph) { AddText(paragraph.text); }
  void operator()(const Facts& facts) {
    for (const Fact& fact : facts.facts) {
      const bool measured = !std::holds_alternative<std::monostate>(fact.value);
      out += Wrapped(
          absl::StrCat(Escaped(CellText(fact.value)), measured && !fact.unit.empty() ? " " : "",
                       measured ? Escaped(fact.unit) : ""),
          absl::StrCat("- **", Escaped(fact.name), "**: "), "  ", kWidestLine);
    }
    out += "\n";
  }
  void operator()(const List& list) {
    for (size_t i = 0; i < list.items.size(); ++i) {
      const std::string mark = list.ordered ? absl::StrCat(i + 1, ". ") : "- ";
      out += Wrapped(Escaped(list.items[i]), mark, std::string(mark.size(), ' '), kWidestLine);
    }
    out += "\n";
  }
  void operator()(const Table& table) {
    out += "|";
    for (const Column& column : table.columns)
      absl::StrAppend(&out, " ", Escaped(column.title), " |");
    out += "\n|";
    for (size_t c = 0; c < table.columns.size(); ++c) {
      bool right = false;
      for (const auto& row : table.rows) right = right || std::holds_alternative<Number>(row[c]);
      out += right ? " ---: |" : " :--- |";
    }
    out += "\n";
    for (const auto& row : table.rows) {
      out += "|";
      for (const Cell& cell : row) absl::StrAppend(&out, " ", Escaped(CellText(cell)), " |");
      out += "\n";
    }
    out += "\n";
    if (!table.note.empty()) AddText(table.note);
  }
  void operator()(const Chart& chart) {
    if (!chart_path_) return;
    absl::StrAppend(&out, "![", Escaped(chart.title), "](", chart_path_(chart), ")\n\n");
  }
  void operator()(const Pictures&) {}

  void Add(const Section& section, int depth) {
    absl::StrAppend(&out, std::string(static_cast<size_t>(std::min(depth + 1, 6)), '#'), " ",
                    Escaped(section.title), "\n\n");
    for (const Block& block : section.blocks) std::visit(*this, block);
    for (const Section& child : section.sections) Add(child, depth + 1);
  }

 private:
  void AddText(const std::string& text) {
    absl::StrAppend(&out, Wrapped(Escaped(text), "", "", kWidestLine), "\n");
  }

  const std::function<std::string(const Chart&)>& chart_path_;
};

}  // namespace

std::string RenderMarkdown(const Document& document,
                           const std::function<std::string(const Chart&)>& chart_path) {
  Writer writer(chart_path);
  writer.Add(document, 0);
  while (writer.out.ends_with("\n\n")) writer.out.pop_back();
  return std::move(writer.out);
}

}  // namespace wan::client::reports
