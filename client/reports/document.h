// A report that is independent of formats: a tree of sections with tables, facts, texts and charts,
// as plain data. render.h renders it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "client/reports/chart.h"

namespace wan::client::reports {

// A figure, and how many digits of it to show; JSON gets all digits.
struct Number {
  double value = 0;
  int digits = 2;
};

// monostate means that the cell has no value, which is shown as '-'.
using Cell = std::variant<std::monostate, std::string, Number>;

struct Column {
  std::string title;
  // The column's name in JSON, in snake case with the unit: "time_seconds".
  std::string key;
};

// Each row has one cell for each column.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  // The note below the table; empty: no note.
  std::string note;
};

// A line "Name: value unit".
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
  // Whether the items are ranked and numbered 1., 2., ...
  bool ordered = false;
};

// Frames of a video, which only HTML shows.
struct Pictures {
  std::string title;
  // JPEG files, from the first frame to the last.
  std::vector<std::string> jpegs;
};

using Block = std::variant<Paragraph, Facts, List, Table, Chart, Pictures>;

struct Section {
  std::string title;
  // The section's name in JSON and its anchor in HTML: "stage_breakdown".
  std::string key;
  std::vector<Block> blocks;
  std::vector<Section> sections;
};

// The root of the tree. The sections of the root are the reports.
using Document = Section;

// Removes the columns in which no row has a value. Does nothing for a table without rows.
void DropEmptyColumns(Table& table);

// Returns the text of the cell for people: "12.87", or "-" if the cell has no value.
std::string CellText(const Cell& cell);

// Returns a cell with the value, or an empty cell; `optional` is a std::optional of a number.
template <typename Optional>
Cell CellOf(const Optional& optional, int digits = 2, double scale = 1) {
  if (!optional) return {};
  return Number{static_cast<double>(*optional) * scale, digits};
}

// Returns a figure with `digits` digits after the point, or more (up to six) so that at least three
// significant digits show.
Number Measure(double value, int digits);

// Returns a cell with the value; the cell is empty for 0 and below, which mean unknown.
Cell Positive(double value, int digits, double scale = 1);
// Like Positive, but with as many digits as Measure shows.
Cell PositiveMeasure(double value, int digits, double scale = 1);

// Returns "2.66 GiB"; below a tenth of a GiB, MiB: "1.7 MiB".
std::string MemoryText(double bytes);

// Returns a cell with the text; the cell is empty for an empty text.
Cell TextCell(std::string text);

inline constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

}  // namespace wan::client::reports
