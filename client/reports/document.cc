#include "client/reports/document.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace wan::client::reports {

void DropEmptyColumns(Table& table) {
  if (table.rows.empty()) return;
  for (size_t column = table.columns.size(); column-- > 0;) {
    const bool empty = std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
      return std::holds_alternative<std::monostate>(row[column]);
    });
    if (!empty) continue;
    table.columns.erase(table.columns.begin() + static_cast<ptrdiff_t>(column));
    for (auto& row : table.rows) row.erase(row.begin() + static_cast<ptrdiff_t>(column));
  }
}

std::string CellText(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* number = std::get_if<Number>(&cell)) {
    std::string text = absl::StrFormat("%.*f", number->digits, number->value);
    // Drop the sign of a negative value that rounds to 0.
    const bool zero = text.find_first_of("123456789") == std::string::npos;
    return zero && text.starts_with("-") ? text.substr(1) : text;
  }
  return "-";
}

Number Measure(double value, int digits) {
  constexpr int kMostDigits = 6;
  while (digits < kMostDigits && std::abs(value) * std::pow(10, digits) < 100 && value != 0) {
    ++digits;
  }
  return {value, digits};
}

Cell Positive(double value, int digits, double scale) {
  if (value <= 0) return {};
  return Number{value * scale, digits};
}

Cell PositiveMeasure(double value, int digits, double scale) {
  if (value <= 0) return {};
  return Measure(value * scale, digits);
}

std::string MemoryText(double bytes) {
  const double gibibytes = bytes / kGibibyte;
  return gibibytes < 0.1 ? absl::StrFormat("%.1f MiB", gibibytes * 1024)
                         : absl::StrFormat("%.2f GiB", gibibytes);
}

Cell TextCell(std::string text) {
  if (text.empty()) return {};
  return text;
}

}  // namespace wan::client::reports
