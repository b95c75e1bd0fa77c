// Downloads the MP4 files of jobs, for reports about their frames.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/reports/run.h"
#include "client/video_client.h"
#include "client/wanctl/scratch_folder.h"
#include "client/wanctl/session.h"

namespace wan::client {

// Downloads the MP4 file into the folder, which is created if needed, and returns its path. The
// errors are those of ScratchFolder::Create and Download.
absl::StatusOr<std::string> FetchVideo(const Session& session, const VideoClient& videos,
                                       const wan::v1::Artifact& mp4, ScratchFolder& scratch);

// Returns the frames that a report of the job shows (Run::frames); none if the job has no MP4 file.
// Errors are those of GetJob, FetchVideo and FrameStrip.
absl::StatusOr<std::vector<std::string>> FetchFrames(Session& session,
                                                     const wan::v1::JobReport& report,
                                                     ScratchFolder& scratch);

}  // namespace wan::client
