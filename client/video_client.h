// wan.v1.VideoGeneration: makes videos, and follows the jobs that make them.
//
//   Connection connection({.server = "localhost:50051"});
//   VideoClient videos(connection);
//   wan::v1::GenerationRequest request;
//   request.set_model("ti2v-5b");
//   request.set_prompt("A red cat runs on the beach.");
//   absl::StatusOr<wan::v1::Event> end =
//       videos.Generate(request, [](const wan::v1::Event& event) { ... });
//   if (end.ok() && end->has_completed())
//     Download(videos, end->completed().artifacts(0), "cat.mp4");      // client/download.h
//
// Every function blocks, may be called from several threads at once, and returns CANCELLED early
// when a stop is requested through its token. client/error.h describes the errors.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/retry.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::client {

// Receives every event but heartbeats, in order, in the thread that made the call.
using EventCallback = std::function<void(const wan::v1::Event&)>;

// True for the last event of a job: completed, failed or cancelled.
bool EndsJob(const wan::v1::Event& event);

class VideoClient {
 public:
  // `connection` and `clock` must outlive this object.
  explicit VideoClient(const Connection& connection, RetryPolicy retries = {},
                       BackoffClock& clock = SystemBackoffClock());

  // Creates a job that lives as long as this call, and returns the job's last event. A job that
  // failed or was cancelled is not an error of the call. If the connection breaks, this call is not
  // retried, and the server cancels the job. If the request has a request_id, the server first
  // waits for a grace time, in which the same call takes the job up again.
  absl::StatusOr<wan::v1::Event> Generate(const wan::v1::GenerationRequest& request,
                                          const EventCallback& on_event,
                                          const std::stop_token& stop = {}) const;

  // Creates a job that runs on its own, and returns once the server has stored it.
  absl::StatusOr<wan::v1::Job> CreateJob(const wan::v1::GenerationRequest& request,
                                         const std::stop_token& stop = {}) const;

  // Job names have the form "jobs/ID". NOT_FOUND if the server has no such job. CancelJob returns a
  // queued job as CANCELLED, and a running one as RUNNING: its last event says when it has ended.
  absl::StatusOr<wan::v1::Job> GetJob(const std::string& name,
                                      const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::ListJobsResponse> ListJobs(const wan::v1::ListJobsRequest& request,
                                                     const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::Job> CancelJob(const std::string& name,
                                         const std::stop_token& stop = {}) const;
  // Plans a request without making a job.
  absl::StatusOr<wan::v1::QuoteResponse> Quote(const wan::v1::GenerationRequest& request,
                                               const std::stop_token& stop = {}) const;
  // The jobs of a batch are created all or none; they come back without their requests.
  absl::StatusOr<wan::v1::SubmitBatchResponse> SubmitBatch(
      const wan::v1::SubmitBatchRequest& request, const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::Job> UpdateJob(const wan::v1::UpdateJobRequest& request,
                                         const std::stop_token& stop = {}) const;
  // Removes a job that has ended, with its artifacts.
  absl::Status DeleteJob(const std::string& name, const std::stop_token& stop = {}) const;
  // Removes one file of a job; `name` is "jobs/ID/artifacts/FILE".
  absl::Status DeleteArtifact(const std::string& name, const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::JobReport> GetReport(const std::string& name,
                                               const std::stop_token& stop = {}) const;

  // Returns what the job's video was made from.
  absl::StatusOr<wan::v1::Receipt> GetReceipt(const std::string& name,
                                              const std::stop_token& stop = {}) const;
  // Returns a principal's use and quota; empty: the caller's. PERMISSION_DENIED for another
  // principal, unless the caller is an administrator.
  absl::StatusOr<wan::v1::Usage> GetUsage(const std::string& principal,
                                          const std::stop_token& stop = {}) const;

  // Passes on the job's events after a sequence number (0: all events), and returns the last one.
  // When the connection breaks, it connects again as the retry policy says and continues after the
  // last event it has seen, so that the callback receives every stored event exactly once. `stop`
  // ends the watching; the job goes on.
  absl::StatusOr<wan::v1::Event> WatchJob(const std::string& name, int64_t after_sequence,
                                          const EventCallback& on_event,
                                          const std::stop_token& stop = {}) const;

  // Streams an artifact's bytes from an offset, once, without retries. An error that `on_chunk`
  // returns ends the call and is returned. Download (client/download.h) writes a whole file with
  // it.
  absl::Status ReadArtifact(
      const std::string& name, uint64_t offset,
      const std::function<absl::Status(const wan::v1::DownloadArtifactResponse&)>& on_chunk,
      const std::stop_token& stop = {}) const;

  // Starts a series of retries with this client's policy and clock.
  Backoff NewBackoff(const std::stop_token& stop) const;

 private:
  const Connection& connection_;
  const RetryPolicy retries_;
  BackoffClock& clock_;
};

}  // namespace wan::client
