// Renders documents in several formats. All functions are pure; the texts that they return end with
// a newline.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/reports/document.h"
#include "client/reports/lines.h"
#include "client/reports/run.h"

namespace wan::client::reports {

// Returns plain text with aligned tables, for a terminal or a file. Charts and pictures are left
// out. No line is longer than `columns`, or than kWidestLine, unless one word is; a table that does
// not fit becomes records with a line for each cell.
std::string RenderText(const Document& document, size_t columns = kWidestLine);

// Returns GitHub's Markdown without the frames of videos. `chart_path` returns the path of a
// chart's picture, relative to the file; if it is empty, charts are left out.
std::string RenderMarkdown(const Document& document,
                           const std::function<std::string(const Chart&)>& chart_path = {});

// Returns a JSON object with the tree and, under "runs", the runs from which it was made, each with
// its JobReport in protobuf's JSON mapping and its frames in base64. Charts, and cells without a
// value, are left out; numbers have all digits.
std::string RenderJson(const Document& document, const std::vector<Run>& runs);

// Parses the runs in a text that RenderJson has made. Fails with INVALID_ARGUMENT if the text has
// another form; messages call it `name`.
absl::StatusOr<std::vector<Run>> ParseRuns(std::string_view json, const std::string& name);

// Returns one self-contained page with style and charts. The page follows the light or dark scheme
// of the reader, and can be printed.
std::string RenderHtml(const Document& document);

// Returns all charts of the tree, in the order of the sections.
std::vector<const Chart*> ChartsOf(const Document& document);

}  // namespace wan::client::reports
