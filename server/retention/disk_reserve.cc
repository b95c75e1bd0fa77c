#include "server/retention/disk_reserve.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

// Bytes for each pixel of an incompressible frame, as 4:2:0 in MP4 and as RGB in MKV. Latents take
// at most a quarter of a byte for each pixel of the video, in float32.
constexpr double kMp4Bytes = 1.5;
constexpr double kMkvBytes = 3;
constexpr double kLatentBytes = 0.25;
// A savepoint of a multistep solver has the latents and up to three outputs of the model.
constexpr double kSavepointBytes = 4 * kLatentBytes;
// The number of video frames for each latent frame; the last latent frame may have fewer.
constexpr double kLatentFrames = 4;
// Bytes for the rows, the events, the report and the containers of the files.
constexpr uint64_t kEntryBytes = uint64_t{64} << 10;

constexpr size_t kFewestObserved = 4;
constexpr size_t kMostObserved = 16;
constexpr double kMargin = 2;

constexpr absl::Duration kRetryDelay = absl::Seconds(30);

// After a shortage, CheckRoom returns OK only when this many times the reserved bytes are free.
constexpr double kRoomAgain = 1.1;

// Returns "1.50 GiB"; writes small numbers in bytes, so that small differences are visible.
std::string BytesText(uint64_t bytes) {
  constexpr uint64_t kMib = uint64_t{1} << 20;
  if (bytes < kMib) return absl::StrCat(bytes, " bytes");
  const double mib = static_cast<double>(bytes) / kMib;
  return mib < 1024 ? absl::StrFormat("%.1f MiB", mib) : absl::StrFormat("%.2f GiB", mib / 1024);
}

double PixelsOf(const wan::v1::GenerationRequest& request) {
  return static_cast<double>(request.width()) * request.height() * request.num_frames();
}

// Returns an upper bound of the video's pixels: its frames are rounded up to whole latent frames.
double LatentPixelsOf(const wan::v1::GenerationRequest& request) {
  return static_cast<double>(request.width()) * request.height() *
         (request.num_frames() + kLatentFrames);
}

// Returns an upper bound of the bytes of a job's savepoint and of the latents of its request.
double WorkBytes(const wan::v1::GenerationRequest& request) {
  double for_each_pixel = request.has_latents() && request.steps() == 0 ? 0 : kSavepointBytes;
  if (request.has_initial_latents()) for_each_pixel += kLatentBytes;
  if (request.has_latents()) for_each_pixel += kLatentBytes;
  return LatentPixelsOf(request) * for_each_pixel;
}

// Returns how many files of an output kind a running job has: a progressive job writes the MP4 a
// second time, for watchers (server/watch/live_video.h).
int FilesOf(const wan::v1::GenerationRequest& request, int kind) {
  return request.progressive() && kind == wan::v1::OUTPUT_KIND_MP4 ? 2 : 1;
}

double MostBytes(const wan::v1::GenerationRequest& request, int kind) {
  switch (kind) {
    case wan::v1::OUTPUT_KIND_LOSSLESS_MKV:
      return PixelsOf(request) * kMkvBytes;
    case wan::v1::OUTPUT_KIND_LATENTS:
      return LatentPixelsOf(request) * kLatentBytes;
    default:
      return PixelsOf(request) * kMp4Bytes;
  }
}

}  // namespace

uint64_t MostOutputBytes(const wan::v1::GenerationRequest& request) {
  double bytes = WorkBytes(request);
  for (const int kind : request.outputs())
    bytes += FilesOf(request, kind) * MostBytes(request, kind);
  return static_cast<uint64_t>(bytes) + kEntryBytes;
}

absl::Status DiskReserve::Take(const wan::v1::Job& job) {
  absl::MutexLock lock(&mutex_);
  const std::optional<uint64_t> free = free_bytes_();
  const uint64_t own = Estimate(job.request());
  const uint64_t needed = reserve_bytes_ + sum_ + own;
  if (!free.has_value() || *free >= needed) {
    Add(job);
    return absl::OkStatus();
  }
  absl::Status status = WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "the disk of the data folder has ", *free, " bytes free, and ", needed,
          " must be free to accept this job: ", own, " for its files, ", sum_, " for those of ",
          parts_.size(), parts_.size() == 1 ? " accepted job" : " accepted jobs", " and ",
          reserve_bytes_,
          " for disk_reserve; remove jobs or files that are no longer needed, or "
          "try again in ",
          absl::FormatDuration(kRetryDelay))),
      kReasonDiskReserve);
  status = WithMetadata(std::move(status), "free_bytes", absl::StrCat(*free));
  status = WithMetadata(std::move(status), "needed_bytes", absl::StrCat(needed));
  return WithRetryDelay(std::move(status), kRetryDelay);
}

void DiskReserve::Release(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  Remove(job);
}

uint64_t DiskReserve::reserved_bytes() const {
  absl::MutexLock lock(&mutex_);
  return reserve_bytes_ + sum_;
}

absl::Status DiskReserve::CheckRoom() {
  absl::MutexLock lock(&mutex_);
  const std::optional<uint64_t> free = free_bytes_();
  const uint64_t reserved = reserve_bytes_ + sum_;
  uint64_t wanted = reserved;
  if (short_) wanted = static_cast<uint64_t>(static_cast<double>(reserved) * kRoomAgain);
  short_ = free.has_value() && *free < wanted;
  if (!short_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the disk of the data folder has ", BytesText(*free), " free; ",
      BytesText(static_cast<uint64_t>(static_cast<double>(reserved) * kRoomAgain)),
      " must be free for accepted jobs and disk_reserve: free space there, for example with "
      "'wanctl delete'"));
}

void DiskReserve::SetReserve(uint64_t reserve_bytes) {
  absl::MutexLock lock(&mutex_);
  reserve_bytes_ = reserve_bytes;
}

void DiskReserve::OnJobState(const wan::v1::Job& job, wan::v1::JobState /*previous*/) {
  absl::MutexLock lock(&mutex_);
  switch (job.state()) {
    case wan::v1::JOB_STATE_COMPLETED:
      Observe(job);
      [[fallthrough]];
    case wan::v1::JOB_STATE_FAILED:
    case wan::v1::JOB_STATE_CANCELLED:
      return Remove(job.name());
    default:
      return Add(job);
  }
}

uint64_t DiskReserve::Estimate(const wan::v1::GenerationRequest& request) const {
  double bytes = WorkBytes(request);
  for (const int kind : request.outputs()) {
    double most = MostBytes(request, kind);
    const auto found = observed_.find({request.model(), static_cast<wan::v1::OutputKind>(kind)});
    if (found != observed_.end() && found->second.size() >= kFewestObserved) {
      const double largest = *std::max_element(found->second.begin(), found->second.end());
      most = std::min(most, kMargin * largest * PixelsOf(request));
    }
    bytes += FilesOf(request, kind) * most;
  }
  return static_cast<uint64_t>(bytes) + kEntryBytes;
}

void DiskReserve::Add(const wan::v1::Job& job) {
  const uint64_t bytes = Estimate(job.request());
  if (parts_.emplace(job.name(), bytes).second) sum_ += bytes;
}

void DiskReserve::Remove(const std::string& job) {
  const auto found = parts_.find(job);
  if (found == parts_.end()) return;
  sum_ -= found->second;
  parts_.erase(found);
}

void DiskReserve::Observe(const wan::v1::Job& job) {
  const double pixels = PixelsOf(job.request());
  if (pixels <= 0) return;
  for (const wan::v1::Artifact& artifact : job.artifacts()) {
    std::deque<double>& latest = observed_[{job.request().model(), artifact.kind()}];
    latest.push_back(static_cast<double>(artifact.size_bytes()) / pixels);
    if (latest.size() > kMostObserved) latest.pop_front();
  }
}

}  // namespace wan::server
