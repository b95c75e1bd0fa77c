// wan.v1.VideoGeneration: making videos and following the jobs that make them.
//
//   Connection connection({.server = "localhost:50051"});
//   VideoClient videos(connection);
//   wan::v1::GenerationRequest request;
//   request.set_model("ti2v-5b");
//   request.set_prompt("A red cat runs on the beach.");
//   absl::StatusOr<wan::v1::Event> end = videos.Generate(request, [](const wan::v1::Event& event)
//   {...}); if (end.ok() && end->has_completed())
//     Download(videos, end->completed().artifacts(0), "cat.mp4");      // client/download.h
//
// Every function blocks, may be called from several threads, and ends early with CANCELLED when the
// stop token it was given is requested. Errors: client/error.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

// Called for every event, in order, in the thread that made the call.
using EventCallback = std::function<void(const wan::v1::Event&)>;

// True for the events that end a job: completed, failed, cancelled.
bool EndsJob(const wan::v1::Event& event);

class VideoClient {
 public:
  // `connection` and `clock` must outlive it.
  explicit VideoClient(const Connection& connection, RetryPolicy retries = {},
                       BackoffClock& clock = SystemBackoffClock());
  ~VideoClient();

  // Makes a job that lives as long as this call, and returns the event that ended it; a job that
  // failed or was cancelled is no error of the call. It is not tried again when the connection
  // breaks, since the server cancels the job then.
  absl::StatusOr<wan::v1::Event> Generate(const wan::v1::GenerationRequest& request,
                                          const EventCallback& on_event,
                                          const std::stop_token& stop = {}) const;

  // Makes a job that lives on its own.
  absl::StatusOr<wan::v1::Job> CreateJob(const wan::v1::GenerationRequest& request,
                                         const std::stop_token& stop = {}) const;

  // Job names have the form "jobs/ID".
  absl::StatusOr<wan::v1::Job> GetJob(const std::string& name,
                                      const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::ListJobsResponse> ListJobs(const wan::v1::ListJobsRequest& request,
                                                     const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::Job> CancelJob(const std::string& name,
                                         const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::JobReport> GetReport(const std::string& name,
                                               const std::stop_token& stop = {}) const;

  // The job's events after a sequence (0: all), until the one that ends the job, which it returns.
  // When the connection breaks it waits as the retry policy says and goes on where it was: the
  // callback sees every kept event once. `stop` ends the watching, not the job.
  absl::StatusOr<wan::v1::Event> WatchJob(const std::string& name, int64_t after_sequence,
                                          const EventCallback& on_event,
                                          const std::stop_token& stop = {}) const;

  // One stream of an artifact's bytes from an offset. An error of `on_chunk` ends the call and is
  // returned. Download (client/download.h) makes a whole file of it.
  absl::Status ReadArtifact(
      const std::string& name, uint64_t offset,
      const std::function<absl::Status(const wan::v1::DownloadArtifactResponse&)>& on_chunk,
      const std::stop_token& stop = {}) const;

  // A new series of retries, as this client makes them.
  Backoff NewBackoff(const std::stop_token& stop) const;

 private:
  struct Stub;

  const Connection& connection_;
  const RetryPolicy retries_;
  BackoffClock& clock_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace wan::client
