// A report before it has a format: a tree of sections that hold tables, facts, texts and charts.
// Builders of sections know no format, and renderers (render.h) know nothing of jobs. All of it is
// plain data.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/reports/chart.h"

namespace wan::client::reports {

// A figure and the number of digits that people see; JSON has all digits.
struct Number {
  double value = 0;
  int digits = 2;
};

// monostate: nothing was measured. It is shown as '-', never as 0.
using Cell = std::variant<std::monostate, std::string, Number>;

struct Column {
  std::string title;
  // The name of the column in JSON, in snake case with its unit: "time_seconds".
  std::string key;
};

// Each row has one cell for each column.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  // Printed below the table; empty: nothing.
  std::string note;
};

// "Name: value unit", a line each.
struct Fact {
  std::string name;
  std::string key;
  Cell value;
  std::string unit;
};
struct Facts {
  std::vector<Fact> facts;
};

struct Paragraph {
  std::string text;
};

struct List {
  std::vector<std::string> items;
  // Whether the items are ranked: 1., 2., ...
  bool ordered = false;
};

using Block = std::variant<Paragraph, Facts, List, Table, Chart>;

struct Section {
  std::string title;
  // The name of the section in JSON and the anchor in HTML: "stage_breakdown".
  std::string key;
  std::vector<Block> blocks;
  std::vector<Section> sections;
};

// The root of the tree. Its sections are the reports.
using Document = Section;

// Removes the columns in which no row has a value. A table without rows stays as it is.
void DropEmptyColumns(Table& table);

// Returns the cell as people read it: "12.87", "-" without a value.
std::string CellText(const Cell& cell);

// Returns a cell with the value, or an empty cell; `optional` is a std::optional of a number.
template <typename Optional>
Cell CellOf(const Optional& optional, int digits = 2, double scale = 1) {
  if (!optional) return {};
  return Number{static_cast<double>(*optional) * scale, digits};
}

// Returns a figure with `digits` digits after the point, or more (up to six) so that at least three
// significant digits show: a demo's GFLOP beside a card's.
Number Measure(double value, int digits);

// Returns an empty cell for 0 and less, which stand for unknown figures.
Cell Positive(double value, int digits, double scale = 1);
// The same with the digits of Measure.
Cell PositiveMeasure(double value, int digits, double scale = 1);

// Returns "2.66 GiB", or "1.7 MiB" of less than a tenth of a GiB.
std::string MemoryText(double bytes);

// Returns an empty cell for an empty text.
Cell TextCell(std::string text);

inline constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

}  // namespace wan::client::reports
