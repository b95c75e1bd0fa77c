#include <string>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/reports/lines.h"
#include "client/reports/render.h"
#include "client/reports/svg.h"

namespace wan::client::reports {
namespace {

constexpr char kPageStyle[] = R"(
:root{color-scheme:light dark;--ink:#1c2430;--dim:#5d6878;--line:#dde2e9;--paper:#ffffff;--band:#f5f7fa;--link:#2f6fb3}
@media (prefers-color-scheme:dark){:root{--ink:#e4e9f0;--dim:#9aa6b6;--line:#333d4a;--paper:#161b22;--band:#1d242d;--link:#6aa9ec}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1240px;padding:24px 28px 60px;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,"Segoe UI","DejaVu Sans",sans-serif}
h1{font-size:26px;margin:8px 0 16px}h2{font-size:21px;margin:44px 0 12px;padding-bottom:6px;border-bottom:2px solid var(--line)}
h3{font-size:17px;margin:30px 0 8px}h4{font-size:15px;margin:22px 0 6px}
p{margin:8px 0;max-width:80ch}ul,ol{margin:8px 0;padding-left:24px;max-width:95ch}li{margin:4px 0}
nav ul{list-style:none;padding:0;margin:0 0 20px;display:flex;flex-wrap:wrap;gap:4px 20px}nav a{color:var(--link)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 18px;margin:10px 0}dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}
.table{overflow-x:auto;margin:10px 0}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
th{text-align:left;background:var(--band);font-weight:600;vertical-align:bottom}
th,td{padding:4px 10px;border-bottom:1px solid var(--line)}td.n,th.n{text-align:right;white-space:nowrap}
.wide table{font-size:12px}.wide th,.wide td{padding:3px 6px}.wide th.n{white-space:normal}
.wide td:not(.n){min-width:9ch}.wide td:not(.n):last-child{min-width:18ch}
tbody tr:hover{background:var(--band)}
.note{color:var(--dim);font-size:13px}
.frames{display:grid;grid-template-columns:repeat(6,1fr);gap:6px}.frames img{display:block;width:100%;height:auto}
@media (max-width:700px){body{padding:12px 14px 40px}.frames{grid-template-columns:repeat(3,1fr)}
td,.wide th.n{white-space:nowrap}td.l{white-space:normal;min-width:26ch}figure{overflow-x:auto}figure>svg{min-width:680px}}
figure{margin:16px 0}figcaption{font-weight:600;font-size:13px;margin-bottom:6px}
details>summary{cursor:pointer;color:var(--dim);font-size:13px;margin:8px 0}
@media print{:root{--ink:#000;--dim:#444;--line:#bbb;--paper:#fff;--band:#f2f2f2;--link:#000;color-scheme:light}
body{max-width:none;padding:0;font-size:10pt}nav{display:none}.table{overflow:visible}
table,.wide table{font-size:7.5pt}th,td,.wide th,.wide td{padding:1pt 4pt}h2{break-before:page}h2:first-of-type{break-before:auto}
figure,tr,dl,.short{break-inside:avoid}h2,h3,h4{break-after:avoid}.note,tr:nth-last-child(-n+3){break-before:avoid}
details:not([open])>*{display:revert}
details::details-content{content-visibility:visible;block-size:auto}}
)";

// Tables with more rows than this are folded on the screen; a click unfolds them, and in print they
// are unfolded.
constexpr size_t kLongTable = 40;
// Cells with longer texts are broken into lines on a phone, whose tables scroll.
constexpr size_t kLongCell = 30;
// Tables with at most this many rows stay on one page.
constexpr size_t kShortTable = 18;
// Tables with more columns than this get a smaller font and headers of several lines.
constexpr size_t kManyColumns = 9;

class Writer {
 public:
  std::string out;

  void operator()(const Paragraph& paragraph) {
    absl::StrAppend(&out, "<p>", EscapeMarkup(paragraph.text), "</p>\n");
  }
  void operator()(const Facts& facts) {
    out += "<dl>\n";
    for (const Fact& fact : facts.facts) {
      const bool measured = !std::holds_alternative<std::monostate>(fact.value);
      absl::StrAppend(&out, "<dt>", EscapeMarkup(fact.name), "</dt><dd>",
                      EscapeMarkup(CellText(fact.value)), measured && !fact.unit.empty() ? " " : "",
                      measured ? EscapeMarkup(fact.unit) : "", "</dd>\n");
    }
    out += "</dl>\n";
  }
  void operator()(const List& list) {
    const char* const name = list.ordered ? "ol" : "ul";
    absl::StrAppend(&out, "<", name, ">\n");
    for (const std::string& item : list.items) {
      absl::StrAppend(&out, "<li>", EscapeMarkup(item), "</li>\n");
    }
    absl::StrAppend(&out, "</", name, ">\n");
  }
  void operator()(const Table& table) {
    const bool folded = table.rows.size() > kLongTable;
    if (folded) absl::StrAppend(&out, "<details><summary>", table.rows.size(), " rows</summary>\n");
    std::vector<bool> numeric(table.columns.size());
    for (const auto& row : table.rows) {
      for (size_t c = 0; c < row.size(); ++c) {
        numeric[c] = numeric[c] || std::holds_alternative<Number>(row[c]);
      }
    }
    absl::StrAppend(&out, "<div class=\"table", table.columns.size() > kManyColumns ? " wide" : "",
                    table.rows.size() <= kShortTable ? " short" : "", "\"><table>\n<thead><tr>");
    for (size_t c = 0; c < table.columns.size(); ++c) {
      absl::StrAppend(&out, numeric[c] ? "<th class=\"n\">" : "<th>",
                      EscapeMarkup(table.columns[c].title), "</th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) {
      out += "<tr>";
      for (size_t c = 0; c < row.size(); ++c) {
        const std::string text = CellText(row[c]);
        const char* const cell = numeric[c]                ? "<td class=\"n\">"
                                 : Width(text) > kLongCell ? "<td class=\"l\">"
                                                           : "<td>";
        absl::StrAppend(&out, cell, EscapeMarkup(text), "</td>");
      }
      out += "</tr>\n";
    }
    out += "</tbody></table></div>\n";
    if (folded) out += "</details>\n";
    if (!table.note.empty()) {
      absl::StrAppend(&out, "<p class=\"note\">", EscapeMarkup(table.note), "</p>\n");
    }
  }
  void operator()(const Chart& chart) {
    absl::StrAppend(&out, "<figure><figcaption>", EscapeMarkup(chart.title), "</figcaption>\n",
                    SvgElement(chart), "</figure>\n");
  }

  void operator()(const Pictures& pictures) {
    absl::StrAppend(&out, "<figure><figcaption>", EscapeMarkup(pictures.title),
                    "</figcaption>\n<div class=\"frames\">\n");
    for (size_t i = 0; i < pictures.jpegs.size(); ++i) {
      absl::StrAppend(&out, "<img src=\"data:image/jpeg;base64,",
                      absl::Base64Escape(pictures.jpegs[i]), "\" alt=\"frame ", i + 1, " of ",
                      pictures.jpegs.size(), "\">\n");
    }
    out += "</div></figure>\n";
  }

  void Add(const Section& section, int depth) {
    const int level = std::min(depth + 1, 6);
    absl::StrAppend(&out, "<h", level,
                    depth == 1 ? absl::StrCat(" id=\"", EscapeMarkup(section.key), "\"") : "", ">",
                    EscapeMarkup(section.title), "</h", level, ">\n");
    if (depth == 0) {
      out += "<nav><ul>\n";
      for (const Section& child : section.sections) {
        absl::StrAppend(&out, "<li><a href=\"#", EscapeMarkup(child.key), "\">",
                        EscapeMarkup(child.title), "</a></li>\n");
      }
      out += "</ul></nav>\n";
    }
    for (const Block& block : section.blocks) std::visit(*this, block);
    for (const Section& child : section.sections) Add(child, depth + 1);
  }
};

}  // namespace

std::string RenderHtml(const Document& document) {
  Writer writer;
  writer.Add(document, 0);
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
      EscapeMarkup(document.title), "</title>\n<style>", kPageStyle, kChartStyle,
      "</style>\n</head>\n<body>\n", writer.out, "</body>\n</html>\n");
}

}  // namespace wan::client::reports
