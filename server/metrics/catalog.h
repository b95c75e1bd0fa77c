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
  std::string_view unit;    // "seconds", "bytes", ...; empty: a plain number
  std::string_view labels;  // "model, stage"; empty: none
  // Description for the HELP line and for the page's last column.
  std::string_view help;
};

struct MetricSection {
  std::string_view title;
  std::span<const MetricRow> rows;
};

// In the order of the page. Any thread.
std::span<const MetricSection> MetricSections();

// Returns the row of a family; null if the table has no such name. Any thread.
const MetricRow* FindRow(std::string_view name);

// Returns the row of a family. Ends the process if the table has no such name, which is a
// programming error. Any thread.
const MetricRow& RowOf(std::string_view name);

// Returns the generated part of docs/operate/metrics.md: a heading and a table for each section.
std::string MetricTables();

}  // namespace wan::server
