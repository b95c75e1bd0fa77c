// Draws charts as SVG.
#pragma once

#include <string>
#include <string_view>

#include "client/reports/chart.h"

namespace wan::client::reports {

// Returns an <svg> element with the CSS classes of kChartStyle, so that it follows the page's light
// or dark scheme. The chart's title becomes the element's accessible name. The drawing is empty if
// the chart has no data.
std::string SvgElement(const Chart& chart);

// Returns a complete SVG file: the element of SvgElement with its style and a background.
std::string SvgFile(const Chart& chart);

// The CSS for a page that contains elements of SvgElement.
extern const char* const kChartStyle;

// Escapes & < > " ' for HTML and XML. Bytes that XML does not allow become '?'.
std::string EscapeMarkup(std::string_view text);

}  // namespace wan::client::reports
