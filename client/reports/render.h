// Turns a document into a format. All functions are pure; a rendered text ends with a newline.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/reports/document.h"
#include "client/reports/run.h"

namespace wan::client::reports {

// For a terminal or a plain text file: titles between lines, aligned tables. Charts are left out.
std::string RenderText(const Document& document);

// GitHub's Markdown. `chart_path` returns the path of a chart's picture, relative to the file; an
// empty function leaves charts out.
std::string RenderMarkdown(const Document& document,
                           const std::function<std::string(const Chart&)>& chart_path = {});

// Returns one object: the tree and, under "runs", the runs that it was made from, each with its
// JobReport in protobuf's JSON mapping. Cells without a value are left out; numbers have all
// digits. Charts are left out, since their figures stand in tables.
std::string RenderJson(const Document& document, const std::vector<Run>& runs);

// Reads the runs from RenderJson's output. INVALID_ARGUMENT if it has another form; messages call
// the text `name`.
absl::StatusOr<std::vector<Run>> ParseRuns(std::string_view json, const std::string& name);

// Returns one self-contained page with style and charts. It follows the reader's light or dark
// scheme, and prints.
std::string RenderHtml(const Document& document);

// All charts of the tree, in order.
std::vector<const Chart*> ChartsOf(const Document& document);

}  // namespace wan::client::reports
