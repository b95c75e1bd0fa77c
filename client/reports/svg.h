// Draws charts as SVG.
#pragma once

#include <string>
#include <string_view>

#include "client/reports/chart.h"

namespace wan::client::reports {

// Returns an <svg> element that takes its colours from the classes of kChartStyle, so that it
// follows the page's light or dark scheme. It has the chart's title as its accessible name. A chart
// without data is an element without marks.
std::string SvgElement(const Chart& chart);

// Returns a complete SVG file: the element with its style and a background.
std::string SvgFile(const Chart& chart);

// CSS for a page that holds such elements.
extern const char* const kChartStyle;

// Escapes & < > " ' for HTML and XML. Bytes that XML does not allow become '?'.
std::string EscapeMarkup(std::string_view text);

}  // namespace wan::client::reports
