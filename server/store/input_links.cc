#include "server/store/input_links.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/conversion/names.h"
#include "server/store/artifact_store.h"
#include "server/store/digest.h"
#include "server/store/durable_file.h"
#include "server/store/leftover_files.h"

namespace wan::server {

namespace fs = std::filesystem;

fs::path InputLinks::PathOf(std::string_view job, std::string_view field) const {
  return folder_ / absl::StrCat(std::string(JobIdOf(job)), ".", std::string(field));
}

void InputLinks::Add(std::string_view job, JobInputs& inputs) const {
  if (inputs.artifacts.empty()) return;
  std::error_code error;
  if (fs::create_directories(folder_, error) && !SyncPath(root_).ok()) {
    fs::remove(folder_, error);  // so that the next call makes and syncs it
    inputs.artifacts.clear();
    return;
  }
  std::erase_if(inputs.artifacts, [&](const auto& entry) {
    const absl::StatusOr<fs::path> artifact = ArtifactPath(root_, entry.second);
    if (error || !artifact.ok()) return true;
    std::error_code refused;
    fs::create_hard_link(*artifact, PathOf(job, entry.first), refused);
    return static_cast<bool>(refused);
  });
}

absl::Status InputLinks::Sync() const { return SyncPath(folder_); }

absl::Status InputLinks::Complete(const wan::v1::Job& job, JobInputs& inputs) const {
  for (const auto& [field, member] : kLatentsInputs) {
    const wan::v1::LatentsSource& source = LatentsOf(job.request(), member);
    if (source.source_case() != wan::v1::LatentsSource::kJob || inputs.*member != nullptr) continue;
    const std::string path = PathOf(job.name(), field).string();
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    if (!file && errno == ENOENT) continue;
    std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file) return ErrnoError(absl::StrCat("reading ", path), errno == 0 ? EIO : errno);
    if (Sha256Hex(bytes) != source.sha256()) continue;
    inputs.*member = std::make_shared<const std::string>(std::move(bytes));
    inputs.artifacts.emplace(field, "");
  }
  return absl::OkStatus();
}

void InputLinks::Remove(std::string_view job) const {
  for (const auto& [field, member] : kLatentsInputs) {
    std::error_code ignored;  // if this fails, RemoveLeftovers tries again
    fs::remove(PathOf(job, field), ignored);
  }
}

absl::Status InputLinks::RemoveLeftovers(
    const std::function<bool(const std::string& job)>& keep) const {
  return RemoveLeftoverFiles(folder_, [&](const std::string& name) {
    const std::string job = "jobs/" + name.substr(0, name.find('.'));
    return CheckJobName(job, "name").ok() && keep(job);
  });
}

}  // namespace wan::server
