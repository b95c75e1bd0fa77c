// Renders documents in several formats. All functions are pure; rendered texts end with a newline.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/reports/document.h"
#include "client/reports/run.h"

namespace wan::client::reports {

// Returns plain text with aligned tables, for a terminal or a file. Leaves out charts.
std::string RenderText(const Document& document);

// Returns GitHub's Markdown. `chart_path` returns the path of a chart's picture, relative to the
// file; an empty function leaves charts out.
std::string RenderMarkdown(const Document& document,
                           const std::function<std::string(const Chart&)>& chart_path = {});

// Returns a JSON object with the tree and, under "runs", the runs from which it was made, each with
// its JobReport in protobuf's JSON mapping. Leaves out charts and cells without a value; numbers
// have all digits.
std::string RenderJson(const Document& document, const std::vector<Run>& runs);

// Parses the runs in RenderJson's output. INVALID_ARGUMENT if it has another form; `name` stands
// for the text in messages.
absl::StatusOr<std::vector<Run>> ParseRuns(std::string_view json, const std::string& name);

// Returns one self-contained page with style and charts. It follows the reader's light or dark
// scheme, and prints.
std::string RenderHtml(const Document& document);

// Returns all charts of the tree, in order.
std::vector<const Chart*> ChartsOf(const Document& document);

}  // namespace wan::client::reports
