// The table of all metric families, with their names, types, units, labels and descriptions. The
// server makes its families and HELP lines from this table; a part of docs/operate/metrics.md is
// generated from the table.
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
  std::string_view unit;    // for example "seconds" or "bytes"; empty: a plain number
  std::string_view labels;  // for example "model, stage"; empty: the family has no labels
  // The description, for the HELP line and for the last column of the page.
  std::string_view help;
};

struct MetricSection {
  std::string_view title;
  std::span<const MetricRow> rows;
};

// Returns the sections of the table, in the order in which the page has them. Any thread may call
// MetricSections.
std::span<const MetricSection> MetricSections();

// Returns the row of a family; null if the table has no such name. Any thread may call FindRow.
const MetricRow* FindRow(std::string_view name);

// Returns the row of a family. Aborts if the table has no such name, which is a programming error.
// Any thread may call RowOf.
const MetricRow& RowOf(std::string_view name);

// Returns the part of docs/operate/metrics.md that is generated: a heading and a table for each
// section. The standard metrics whose names begin with process_ are left out.
std::string MetricTables();

}  // namespace wan::server
