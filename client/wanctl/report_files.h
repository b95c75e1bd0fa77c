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

// Returns the file's content. NOT_FOUND if it cannot be read.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes the file atomically. INVALID_ARGUMENT if it cannot be written.
absl::Status WriteFile(const std::string& path, const std::string& text);

// Whether the path ends with '/' or is an existing folder.
bool IsFolder(const std::string& path);

// Returns the format for the endings ".md", ".html", ".json" and ".txt", in any case; nullopt for
// others.
std::optional<ReportFormat> FormatOfPath(const std::string& path);

// Renders a document in one format. The Markdown report has no pictures, because each would be a
// separate file.
std::string Rendered(const reports::Document& document, const std::vector<reports::Run>& runs,
                     ReportFormat format);

// Writes report.json, report.md, report.html, and plots/NAME.svg for report.md. Creates the folder
// if needed. INVALID_ARGUMENT if something cannot be written.
absl::Status WriteReports(const std::string& folder, const reports::Document& document,
                          const std::vector<reports::Run>& runs);

// Reads the ceilings in the file of --ceilings; none for an empty path. An error names the file.
absl::StatusOr<std::vector<reports::Ceilings>> NamedCeilings(const std::string& path);

// Reads the ceilings of the runs' devices from the user's data folder. Skips unreadable files and
// calls `refused` with the error.
std::vector<reports::Ceilings> KeptCeilings(const std::string& data_home,
                                            const std::vector<reports::Run>& runs,
                                            const std::function<void(const std::string&)>& refused);

}  // namespace wan::client
