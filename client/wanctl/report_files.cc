#include "client/wanctl/report_files.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/reports/ceilings_folder.h"
#include "client/reports/render.h"
#include "client/reports/svg.h"

namespace wan::client {

namespace fs = std::filesystem;

absl::Status WriteFile(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << text;
    if (!file.flush()) return absl::InvalidArgumentError(absl::StrCat(path, " cannot be written"));
  }
  std::error_code error;
  fs::rename(part, path, error);
  if (error) {
    std::error_code ignored;
    fs::remove(part, ignored);
    return absl::InvalidArgumentError(absl::StrCat(path, " cannot be written: ", error.message()));
  }
  return absl::OkStatus();
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return path.ends_with('/') || fs::is_directory(path, error);
}

std::optional<ReportFormat> FormatOfPath(const std::string& path) {
  const std::string ending = absl::AsciiStrToLower(fs::path(path).extension().string());
  if (ending == ".md") return ReportFormat::kMarkdown;
  if (ending == ".html") return ReportFormat::kHtml;
  if (ending == ".json") return ReportFormat::kJson;
  if (ending == ".txt") return ReportFormat::kText;
  return std::nullopt;
}

std::string Rendered(const reports::Document& document, const std::vector<reports::Run>& runs,
                     ReportFormat format, int columns) {
  switch (format) {
    case ReportFormat::kMarkdown:
      return reports::RenderMarkdown(document);
    case ReportFormat::kJson:
      return reports::RenderJson(document, runs);
    case ReportFormat::kHtml:
      return reports::RenderHtml(document);
    case ReportFormat::kTable:
    case ReportFormat::kText:
      break;
  }
  return columns > 0 ? reports::RenderText(document, static_cast<size_t>(columns))
                     : reports::RenderText(document);
}

absl::Status WritePages(const std::string& folder, const std::string& name,
                        const reports::Document& document) {
  std::error_code error;
  fs::create_directories(fs::path(folder) / "plots", error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, " cannot be created: ", error.message()));
  }
  std::map<const reports::Chart*, std::string> paths;
  int number = 0;
  for (const reports::Chart* chart : reports::ChartsOf(document)) {
    const std::string path = absl::StrFormat("plots/%02d_%s.svg", ++number, chart->key);
    paths[chart] = path;
    absl::Status written = WriteFile(fs::path(folder) / path, reports::SvgFile(*chart));
    if (!written.ok()) return written;
  }
  absl::Status written =
      WriteFile(fs::path(folder) / (name + ".md"),
                reports::RenderMarkdown(
                    document, [&](const reports::Chart& chart) { return paths.at(&chart); }));
  if (!written.ok()) return written;
  return WriteFile(fs::path(folder) / (name + ".html"), reports::RenderHtml(document));
}

absl::Status WriteReports(const std::string& folder, const reports::Document& document,
                          const std::vector<reports::Run>& runs) {
  absl::Status written = WritePages(folder, "report", document);
  if (!written.ok()) return written;
  return WriteFile(fs::path(folder) / "report.json", reports::RenderJson(document, runs));
}

absl::StatusOr<std::vector<reports::Ceilings>> NamedCeilings(const std::string& path) {
  std::vector<reports::Ceilings> named;
  if (path.empty()) return named;
  absl::StatusOr<reports::Ceilings> ceilings = reports::ReadCeilings(path);
  if (!ceilings.ok()) return ceilings.status();
  named.push_back(*std::move(ceilings));
  return named;
}

std::vector<reports::Ceilings> KeptCeilings(
    const std::string& data_home, const std::vector<reports::Run>& runs,
    const std::function<void(const std::string&)>& refused) {
  std::vector<reports::Ceilings> kept;
  std::set<std::string> looked_for;
  for (const reports::Run& run : runs) {
    const std::string path =
        reports::KeptCeilingsPath(data_home, reports::DeviceNameOf(run.report));
    if (path.empty() || !looked_for.insert(path).second) continue;
    absl::StatusOr<reports::Ceilings> ceilings = reports::ReadCeilings(path);
    if (ceilings.ok()) {
      kept.push_back(*std::move(ceilings));
    } else if (!absl::IsNotFound(ceilings.status())) {
      refused(std::string(ceilings.status().message()));
    }
  }
  return kept;
}

}  // namespace wan::client
