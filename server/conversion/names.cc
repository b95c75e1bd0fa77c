#include "server/conversion/names.h"

#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"

namespace wan::server {
namespace {

constexpr std::string_view kJobs = "jobs/";
constexpr std::string_view kArtifacts = "/artifacts/";
constexpr std::string_view kModels = "models/";
constexpr size_t kIdBytes = 10;
constexpr size_t kMaxIdLength = 63;
constexpr size_t kMaxQuotedBytes = 200;

// Puts a text into quotes for a message: escaped, and cut if it is longer than any valid name.
std::string Quoted(std::string_view text) {
  const bool cut = text.size() > kMaxQuotedBytes;
  text = text.substr(0, kMaxQuotedBytes);
  return absl::StrCat("'", absl::CHexEscape(absl::string_view(text.data(), text.size())),
                      cut ? "...'" : "'");
}

bool IsId(std::string_view id) {
  if (id.empty() || id.size() > kMaxIdLength) return false;
  for (const char c : id) {
    const auto byte = static_cast<unsigned char>(c);
    if (!absl::ascii_islower(byte) && !absl::ascii_isdigit(byte) && c != '-') return false;
  }
  return true;
}

bool IsFileName(std::string_view file) {
  if (file.empty() || file.front() == '.') return false;
  for (const char c : file) {
    const auto byte = static_cast<unsigned char>(c);
    if (!absl::ascii_isalnum(byte) && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

}  // namespace

std::string NewJobName() {
  std::random_device random;
  std::string bytes;
  for (size_t i = 0; i < kIdBytes; ++i) bytes.push_back(static_cast<char>(random()));
  return absl::StrCat(std::string(kJobs), absl::BytesToHexString(bytes));
}

absl::Status CheckJobName(std::string_view name, std::string_view field) {
  if (name.substr(0, kJobs.size()) == kJobs && IsId(JobIdOf(name))) return absl::OkStatus();
  return InvalidFields(
      {{std::string(field), absl::StrCat(Quoted(name),
                                         " is not the name of a job; must be 'jobs/ID', "
                                         "as CreateJob and ListJobs return it")}});
}

std::string_view JobIdOf(std::string_view job_name) { return job_name.substr(kJobs.size()); }

std::string ArtifactName(std::string_view job_name, std::string_view file) {
  return std::string(job_name).append(kArtifacts).append(file);
}

absl::StatusOr<ArtifactRef> ParseArtifactName(std::string_view name, std::string_view field) {
  const size_t cut = name.find(kArtifacts);
  if (cut != std::string_view::npos) {
    const std::string_view job = name.substr(0, cut);
    const std::string_view file = name.substr(cut + kArtifacts.size());
    if (CheckJobName(job, field).ok() && IsFileName(file)) {
      return ArtifactRef{std::string(job), std::string(file)};
    }
  }
  return InvalidFields(
      {{std::string(field),
        absl::StrCat(Quoted(name),
                     " is not the name of an artifact; must be 'jobs/ID/artifacts/FILE', "
                     "as Job.artifacts has it")}});
}

std::string_view BareModelName(std::string_view name) {
  return name.substr(0, kModels.size()) == kModels ? name.substr(kModels.size()) : name;
}

}  // namespace wan::server
