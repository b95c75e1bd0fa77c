// The client for wan.v1.VideoGeneration, which makes videos and follows their jobs.
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

// Receives every event except heartbeats, in the order of the events, on the thread that made the
// call.
using EventCallback = std::function<void(const wan::v1::Event&)>;

// Whether the event is the last one of a job: completed, failed or cancelled.
bool EndsJob(const wan::v1::Event& event);

class VideoClient {
 public:
  // `connection` and `clock` must outlive this object.
  explicit VideoClient(const Connection& connection, RetryPolicy retries = {},
                       BackoffClock& clock = SystemBackoffClock());

  // Creates a job that is tied to this call, and returns the job's last event. If the job failed or
  // was cancelled, the call still succeeds. The call is not retried: if the connection breaks, the
  // server cancels the job; if the job has a request_id, only after a grace time in which the same
  // call can join the job again.
  absl::StatusOr<wan::v1::Event> Generate(const wan::v1::GenerationRequest& request,
                                          const EventCallback& on_event,
                                          const std::stop_token& stop = {}) const;

  // Creates a job that is not tied to the call, and returns when the server has stored the job.
  absl::StatusOr<wan::v1::Job> CreateJob(const wan::v1::GenerationRequest& request,
                                         const std::stop_token& stop = {}) const;

  // Job names have the form "jobs/ID". Fails with NOT_FOUND if the server has no such job.
  // CancelJob returns a queued job as CANCELLED and a running one as RUNNING; the running job's
  // last event tells its end.
  absl::StatusOr<wan::v1::Job> GetJob(const std::string& name,
                                      const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::ListJobsResponse> ListJobs(const wan::v1::ListJobsRequest& request,
                                                     const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::Job> CancelJob(const std::string& name,
                                         const std::stop_token& stop = {}) const;
  // Plans a request, but makes no job.
  absl::StatusOr<wan::v1::QuoteResponse> Quote(const wan::v1::GenerationRequest& request,
                                               const std::stop_token& stop = {}) const;
  // Creates all jobs of a batch or none; the returned jobs lack the field `request`.
  absl::StatusOr<wan::v1::SubmitBatchResponse> SubmitBatch(
      const wan::v1::SubmitBatchRequest& request, const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::Job> UpdateJob(const wan::v1::UpdateJobRequest& request,
                                         const std::stop_token& stop = {}) const;
  // Removes an ended job together with its artifacts.
  absl::Status DeleteJob(const std::string& name, const std::stop_token& stop = {}) const;
  // Removes one file of a job; `name` is "jobs/ID/artifacts/FILE".
  absl::Status DeleteArtifact(const std::string& name, const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::JobReport> GetReport(const std::string& name,
                                               const std::stop_token& stop = {}) const;

  // Returns the inputs from which the job's video was made.
  absl::StatusOr<wan::v1::Receipt> GetReceipt(const std::string& name,
                                              const std::stop_token& stop = {}) const;
  // Returns the use and quota of a principal; an empty name means the caller. Fails with
  // PERMISSION_DENIED for another principal, unless the caller is an administrator.
  absl::StatusOr<wan::v1::Usage> GetUsage(const std::string& principal,
                                          const std::stop_token& stop = {}) const;

  // Calls `on_event` with the job's events after a sequence number (0: with all events), and
  // returns the last one. When the connection breaks, WatchJob reconnects as the retry policy says
  // and continues after the last event seen, so that `on_event` receives every stored event exactly
  // once. Requesting `stop` ends only the call; the job goes on.
  absl::StatusOr<wan::v1::Event> WatchJob(const std::string& name, int64_t after_sequence,
                                          const EventCallback& on_event,
                                          const std::stop_token& stop = {}) const;

  // Streams an artifact's bytes from an offset, without retries. If `on_chunk` returns an error,
  // the call ends and returns that error. To write a whole file, call Download (client/download.h),
  // which uses this function.
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
