#include "server/jobs/request_latents.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/conversion/errors.h"
#include "server/store/digest.h"

namespace wan::server {
namespace {

constexpr absl::Duration kRetryDelay = absl::Seconds(1);
constexpr size_t kBytesAtOnce = size_t{1} << 20;

}  // namespace

absl::StatusOr<JobInputs> RequestLatents::Read(const wan::v1::GenerationRequest& request,
                                               const JobReader& reader,
                                               std::vector<FieldViolation>& violations) const {
  JobInputs inputs;
  // ValidateRequest has already added a violation for an image that is set but empty.
  if (!request.image().empty()) inputs.image = std::make_shared<const std::string>(request.image());
  for (const auto& [name, member] : kLatentsInputs) {
    const wan::v1::LatentsSource& source = LatentsOf(request, member);
    const std::string field(name);
    JobInputs::File& file = inputs.*member;
    if (source.source_case() == wan::v1::LatentsSource::kJob) {
      absl::StatusOr<JobInputs::File> read =
          ReadArtifact(field + ".job", source.job(), reader, violations);
      if (!read.ok()) return read.status();
      file = *std::move(read);
    } else if (!source.data().empty()) {
      file = std::make_shared<const std::string>(source.data());
    }
    if (file == nullptr || source.sha256().empty()) continue;
    const std::string digest = Sha256Hex(*file);
    if (digest == source.sha256()) continue;
    violations.push_back(
        {field + ".sha256", absl::StrCat("is ", source.sha256(), ", but the file has ", digest,
                                         "; must be the file's, or empty")});
  }
  return inputs;
}

absl::Status RequestLatents::CheckReader(const std::string& job, const JobReader& reader) const {
  if (reader.all) return absl::OkStatus();
  const absl::StatusOr<std::string> owner = parts_.owner_of(job);
  if (!owner.ok()) return owner.status();
  return *owner == reader.owner ? absl::OkStatus() : JobNotFoundError(job);
}

absl::StatusOr<JobInputs::File> RequestLatents::ReadArtifact(
    const std::string& field, const std::string& job, const JobReader& reader,
    std::vector<FieldViolation>& violations) const {
  const auto refuse = [&](const std::string& why) -> JobInputs::File {
    violations.push_back({field, absl::StrCat("is ", job, why)});
    return nullptr;
  };
  const absl::Status allowed = CheckReader(job, reader);
  const absl::StatusOr<wan::v1::Job> found =
      allowed.ok() ? parts_.find(job) : absl::StatusOr<wan::v1::Job>(allowed);
  // ValidateRequest has already added a violation for a name that is no job's.
  if (absl::IsInvalidArgument(found.status())) return nullptr;
  if (absl::IsNotFound(found.status())) {
    return refuse(", which does not exist; must be one of your jobs");
  }
  if (!found.ok()) return found.status();
  const auto artifact = std::find_if(
      found->artifacts().begin(), found->artifacts().end(),
      [](const wan::v1::Artifact& one) { return one.kind() == wan::v1::OUTPUT_KIND_LATENTS; });
  if (artifact == found->artifacts().end()) {
    return refuse(
        ", which has no latents; must be a job that has completed with LATENTS among its outputs");
  }
  if (artifact->size_bytes() > kMostArtifactLatentsBytes) {
    return refuse(absl::StrCat(", whose latents have ", artifact->size_bytes(),
                               " bytes; must be a job whose latents have at most ",
                               kMostArtifactLatentsBytes));
  }
  absl::StatusOr<ArtifactReader> opened = parts_.open(artifact->name());
  if (absl::IsNotFound(opened.status())) {
    return refuse(", whose latents were removed; must be a job that still has them");
  }
  if (!opened.ok()) return opened.status();
  return Hold(*std::move(opened), artifact->size_bytes());
}

absl::StatusOr<JobInputs::File> RequestLatents::Hold(ArtifactReader reader, size_t bytes) const {
  if (held_->fetch_add(bytes) + bytes > kMostHeldLatentsBytes) {
    held_->fetch_sub(bytes);
    return ServerBusyError(
        absl::StrCat("the server already reads latents of other requests with together up to ",
                     kMostHeldLatentsBytes, " bytes"),
        kRetryDelay);
  }
  // The deleter gives the bytes back, wherever the last user of the file is.
  std::shared_ptr<std::string> file(new std::string(), [held = held_, bytes](const std::string* s) {
    delete s;
    held->fetch_sub(bytes);
  });
  file->reserve(bytes);
  while (file->size() < bytes) {
    absl::StatusOr<std::string> part = reader.Read(std::min(kBytesAtOnce, bytes - file->size()));
    if (!part.ok()) return part.status();
    if (part->empty()) break;  // planning refuses a file that was cut
    file->append(*part);
  }
  return file;
}

void DescribeLatents(const wan::v1::GenerationRequest& asked, const JobInputs& inputs,
                     wan::v1::GenerationRequest& resolved) {
  for (const auto& [field, member] : kLatentsInputs) {
    const JobInputs::File& file = inputs.*member;
    if (file == nullptr) continue;
    wan::v1::LatentsSource& source = MutableLatentsOf(resolved, member);
    const wan::v1::LatentsSource& from = LatentsOf(asked, member);
    if (from.source_case() == wan::v1::LatentsSource::kJob) source.set_job(from.job());
    source.set_sha256(Sha256Hex(*file));
  }
}

}  // namespace wan::server
