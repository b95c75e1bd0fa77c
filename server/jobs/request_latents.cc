#include "server/jobs/request_latents.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/conversion/errors.h"
#include "server/store/digest.h"

namespace wan::server {
namespace {

constexpr absl::Duration kRetryDelay = absl::Seconds(1);
constexpr size_t kBytesAtOnce = size_t{1} << 20;

}  // namespace

uint64_t NamedLatents::bytes() const {
  return std::accumulate(sources.begin(), sources.end(), uint64_t{0},
                         [](uint64_t sum, const Source& one) { return sum + one.bytes; });
}

bool NamesJobs(const wan::v1::GenerationRequest& request) {
  return std::any_of(kLatentsInputs.begin(), kLatentsInputs.end(), [&](const auto& input) {
    return LatentsOf(request, input.second).source_case() == wan::v1::LatentsSource::kJob;
  });
}

absl::StatusOr<NamedLatents> RequestLatents::Find(const wan::v1::GenerationRequest& request,
                                                  const JobReader& reader,
                                                  std::vector<FieldViolation>& violations) const {
  NamedLatents named;
  for (size_t i = 0; i < kLatentsInputs.size(); ++i) {
    const auto& [field, member] = kLatentsInputs[i];
    const wan::v1::LatentsSource& source = LatentsOf(request, member);
    if (source.source_case() != wan::v1::LatentsSource::kJob) continue;
    absl::StatusOr<NamedLatents::Source> found =
        FindArtifact(absl::StrCat(std::string(field), ".job"), source.job(), reader, violations);
    if (!found.ok()) return found.status();
    named.sources[i] = *std::move(found);
  }
  return named;
}

absl::StatusOr<RequestLatents::Lease> RequestLatents::Hold(const std::string& owner,
                                                           uint64_t bytes) const {
  if (bytes == 0) return Lease();
  {
    absl::MutexLock lock(&holdings_->mutex);
    const auto found = holdings_->held.find(owner);
    const uint64_t held = found == holdings_->held.end() ? 0 : found->second;
    const auto more = static_cast<int64_t>(bytes);
    const Budget::Verdict verdict = holdings_->budget.Ask(static_cast<int64_t>(held), more);
    if (verdict == Budget::Verdict::kPartyFull) {
      return ServerBusyError(
          absl::StrCat("requests of this caller already hold ", held, " of the ",
                       kMostHeldLatentsBytes, " bytes for latents of earlier jobs"),
          kRetryDelay);
    }
    if (verdict == Budget::Verdict::kFull) {
      return ServerBusyError(
          absl::StrCat("requests hold ", holdings_->budget.taken(), " of the ",
                       kMostHeldLatentsBytes, " bytes for latents of earlier jobs"),
          kRetryDelay);
    }
    holdings_->budget.Take(more);
    holdings_->held[owner] += bytes;
  }
  return Lease(holdings_.get(), [holdings = holdings_, owner, bytes](const void*) {
    absl::MutexLock lock(&holdings->mutex);
    holdings->budget.Take(-static_cast<int64_t>(bytes));
    const auto held = holdings->held.find(owner);
    held->second -= bytes;
    if (held->second == 0) holdings->held.erase(held);
  });
}

absl::StatusOr<JobInputs> RequestLatents::Read(const wan::v1::GenerationRequest& request,
                                               const NamedLatents& named, const Lease& lease,
                                               std::vector<FieldViolation>& violations) const {
  JobInputs inputs;
  // ValidateRequest has already added a violation if the image is set but empty.
  if (!request.image().empty()) inputs.image = std::make_shared<const std::string>(request.image());
  for (size_t i = 0; i < kLatentsInputs.size(); ++i) {
    const auto& [name, member] = kLatentsInputs[i];
    const wan::v1::LatentsSource& source = LatentsOf(request, member);
    const std::string field(name);
    JobInputs::File& file = inputs.*member;
    if (!named.sources[i].artifact.empty()) {
      absl::StatusOr<JobInputs::File> read =
          ReadArtifact(field + ".job", named.sources[i], lease, violations);
      if (!read.ok()) return read.status();
      file = *std::move(read);
      inputs.artifacts.emplace(name, named.sources[i].artifact);
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

absl::StatusOr<NamedLatents::Source> RequestLatents::FindArtifact(
    const std::string& field, const std::string& job, const JobReader& reader,
    std::vector<FieldViolation>& violations) const {
  const auto refuse = [&](const std::string& why) {
    violations.push_back({field, absl::StrCat("is ", job, why)});
    return NamedLatents::Source();
  };
  const absl::Status allowed = CheckReader(job, reader);
  const absl::StatusOr<wan::v1::Job> found =
      allowed.ok() ? parts_.find(job) : absl::StatusOr<wan::v1::Job>(allowed);
  if (absl::IsInvalidArgument(found.status())) return NamedLatents::Source();
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
  return NamedLatents::Source{job, artifact->name(), artifact->size_bytes()};
}

absl::StatusOr<JobInputs::File> RequestLatents::ReadArtifact(
    const std::string& field, const NamedLatents::Source& source, const Lease& lease,
    std::vector<FieldViolation>& violations) const {
  absl::StatusOr<ArtifactReader> opened = parts_.open(source.artifact);
  if (absl::IsNotFound(opened.status())) {
    violations.push_back(
        {field, absl::StrCat("is ", source.job,
                             ", whose latents were removed; must be a job that still has them")});
    return JobInputs::File();
  }
  if (!opened.ok()) return opened.status();
  const auto bytes = static_cast<size_t>(source.bytes);
  // The deleter keeps the lease, wherever the last user of the file is.
  std::shared_ptr<std::string> file(new std::string(),
                                    [lease](const std::string* text) { delete text; });
  file->reserve(bytes);
  while (file->size() < bytes) {
    absl::StatusOr<std::string> part = opened->Read(std::min(kBytesAtOnce, bytes - file->size()));
    if (!part.ok()) return part.status();
    if (part->empty()) break;  // planning refuses a truncated file
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
