// Reads the input files of reports, and writes reports.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/reports/report.h"
#include "client/wanctl/values.h"

namespace wan::client {

// Writes the file atomically. INVALID_ARGUMENT if the file cannot be written.
absl::Status WriteFile(const std::string& path, const std::string& text);

// Whether the path ends with '/' or is an existing folder.
bool IsFolder(const std::string& path);

// Returns the format for a path that ends with ".md", ".html", ".json" or ".txt", in capital or
// small letters; nullopt for other paths.
std::optional<ReportFormat> FormatOfPath(const std::string& path);

// Renders a document in one format. Markdown documents get no charts, because each chart would be a
// separate file. `columns` is the width of the terminal that shows the text; 0: there is no
// terminal.
std::string Rendered(const reports::Document& document, const std::vector<reports::Run>& runs,
                     ReportFormat format, int columns = 0);

// Writes NAME.md, NAME.html, and plots/CHART.svg for NAME.md. Creates the folder if needed.
// INVALID_ARGUMENT if something cannot be written.
absl::Status WritePages(const std::string& folder, const std::string& name,
                        const reports::Document& document);

// Writes report.json, report.md, report.html, and plots/NAME.svg for report.md. Creates the folder
// if it is missing. Fails with INVALID_ARGUMENT if something cannot be written.
absl::Status WriteReports(const std::string& folder, const reports::Document& document,
                          const std::vector<reports::Run>& runs);

// Reads the ceilings in the file that --ceilings names; returns no ceilings if the path is empty.
// An error names the file.
absl::StatusOr<std::vector<reports::Ceilings>> NamedCeilings(const std::string& path);

// Reads the ceilings of the devices of the runs from the user's data folder. Skips files that
// cannot be read, and calls `refused` with the error.
std::vector<reports::Ceilings> KeptCeilings(const std::string& data_home,
                                            const std::vector<reports::Run>& runs,
                                            const std::function<void(const std::string&)>& refused);

}  // namespace wan::client
