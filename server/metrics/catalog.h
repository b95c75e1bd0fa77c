// The table of all metric families: their names, types, units, labels and meanings. The server
// makes every family from its row, and docs/operate/metrics.md shows the rows, so that code, HELP
// lines and page agree.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace wan::server {

enum class MetricType { kCounter, kGauge, kHistogram };

// "counter", "gauge" or "histogram".
std::string_view NameOf(MetricType type);

struct MetricRow {
  std::string_view name;
  MetricType type;
  std::string_view unit;    // "seconds", "bytes", ...; empty: a number without one
  std::string_view labels;  // "model, stage"; empty: none
  // What it counts or measures: the HELP line, and the page's last column.
  std::string_view help;
};

struct MetricSection {
  std::string_view title;
  std::span<const MetricRow> rows;
};

// In the order of the page. Any thread.
std::span<const MetricSection> MetricSections();

// The row of a family; null if the table has no such name. Any thread.
const MetricRow* FindRow(std::string_view name);

// The row of a family. Ends the process if the table has no such name: that is a mistake in the
// code, which any test of it finds. Any thread.
const MetricRow& RowOf(std::string_view name);

// The part of docs/operate/metrics.md that is made from the table: a heading and a table for each
// section.
std::string MetricTables();

}  // namespace wan::server
