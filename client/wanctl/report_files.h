// Reads the input files of reports and writes reports.
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

// NOT_FOUND if it cannot be read.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// The file appears whole under its name or not at all. INVALID_ARGUMENT if it cannot be written.
absl::Status WriteFile(const std::string& path, const std::string& text);

// Whether the path ends with '/' or is that of a folder.
bool IsFolder(const std::string& path);

// Returns the format of ".md", ".html", ".json" and ".txt", in lower or upper case; nullopt for
// another ending.
std::optional<ReportFormat> FormatOfPath(const std::string& path);

// Renders a document in one format. Markdown has no pictures, since they would be separate files.
std::string Rendered(const reports::Document& document, const std::vector<reports::Run>& runs,
                     ReportFormat format);

// Writes report.json, report.md, report.html and plots/NAME.svg, which report.md shows. The folder
// is created if needed. INVALID_ARGUMENT if something cannot be written.
absl::Status WriteReports(const std::string& folder, const reports::Document& document,
                          const std::vector<reports::Run>& runs);

// Reads the ceilings of the file that --ceilings names; none for an empty name. An error names the
// file.
absl::StatusOr<std::vector<reports::Ceilings>> NamedCeilings(const std::string& path);

// Reads the ceilings of the runs' devices from the user's data folder. An unreadable file is left
// out, and `refused` is called with the error.
std::vector<reports::Ceilings> KeptCeilings(const std::string& data_home,
                                            const std::vector<reports::Run>& runs,
                                            const std::function<void(const std::string&)>& refused);

}  // namespace wan::client
