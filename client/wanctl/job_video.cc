#include "client/wanctl/job_video.h"

#include "absl/strings/str_cat.h"
#include "client/compare/frame_strip.h"
#include "client/download.h"

namespace wan::client {

absl::StatusOr<std::string> FetchVideo(const Session& session, const VideoClient& videos,
                                       const wan::v1::Artifact& mp4, ScratchFolder& scratch) {
  if (absl::Status status = scratch.Create(); !status.ok()) return status;
  // Name the file by its digest, so that jobs with equal videos share one file.
  const std::string path = scratch.File(absl::StrCat(mp4.sha256(), ".mp4")).string();
  absl::Status status = Download(videos, mp4, path, nullptr, session.stop());
  if (!status.ok()) return status;
  return path;
}

absl::StatusOr<std::vector<std::string>> FetchFrames(Session& session,
                                                     const wan::v1::JobReport& report,
                                                     ScratchFolder& scratch) {
  const VideoClient videos = session.Videos();
  const absl::StatusOr<wan::v1::Job> job = videos.GetJob(report.job(), session.stop());
  if (!job.ok()) return job.status();
  for (const wan::v1::Artifact& artifact : job->artifacts()) {
    if (artifact.kind() != wan::v1::OUTPUT_KIND_MP4) continue;
    const absl::StatusOr<std::string> path = FetchVideo(session, videos, artifact, scratch);
    if (!path.ok()) return path.status();
    return FrameStrip(*path, report.request().num_frames(), session.stop());
  }
  return std::vector<std::string>();
}

}  // namespace wan::client
