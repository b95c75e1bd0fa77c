// The table of all metric families: names, types, units, labels and descriptions. The server's
// families, their HELP lines and docs/operate/metrics.md are made from it.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace wan::server {

enum class MetricType { kCounter, kGauge, kHistogram };

// Returns "counter", "gauge" or "histogram".
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

// Returns the sections in the order of the page. Any thread may call it.
std::span<const MetricSection> MetricSections();

// Returns the row of a family; null if the table has no such name. Any thread may call it.
const MetricRow* FindRow(std::string_view name);

// Returns the row of a family. Aborts if the table has no such name, which is a programming error.
// Any thread may call it.
const MetricRow& RowOf(std::string_view name);

// Returns the generated part of docs/operate/metrics.md: a heading and a table for each section.
std::string MetricTables();

}  // namespace wan::server
