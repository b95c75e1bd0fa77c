// Answers DownloadArtifact: sends a file, or a video while it is made.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/calls/admission.h"
#include "server/calls/worker_pool.h"
#include "server/jobs/job_service.h"
#include "server/rpc/stream.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

class DownloadStream final : public Stream<wan::v1::DownloadArtifactResponse> {
 public:
  struct Shared {
    JobService& jobs;
    Admission& admission;
    WorkerPool& pool;
  };

  DownloadStream(const grpc::CallbackServerContext& context,
                 wan::v1::DownloadArtifactRequest request, const Shared& shared);

 private:
  Next Produce(wan::v1::DownloadArtifactResponse* chunk, absl::Status* status) override;
  Next ProduceFile(wan::v1::DownloadArtifactResponse* chunk, absl::Status* status);
  Next ProduceLive(wan::v1::DownloadArtifactResponse* chunk, absl::Status* status);
  absl::Status BeginLive();
  // Fills the next message of the file; `first` says whether it is the stream's first.
  absl::Status ReadFile(bool first, wan::v1::DownloadArtifactResponse* chunk);
  absl::Status TakePlace();

  const wan::v1::DownloadArtifactRequest request_;
  const Shared shared_;
  const std::string peer_;
  bool is_live_;        // false: the stream sends a file
  bool begun_ = false;  // whether the first message was made
  Admission::Lease place_;
  std::optional<ArtifactReader> reader_;
  std::unique_ptr<LiveVideoReader> live_;  // null before the first message of a live video
  uint64_t live_offset_ = 0;
};

}  // namespace wan::server
