#include "client/video_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/calls.h"
#include "wan/v1/video_generation.grpc.pb.h"

namespace wan::client {
namespace {

using wan::v1::Event;
using Service = wan::v1::VideoGeneration;
using Stub = Service::StubInterface;

// Returns the result of a call that follows a job, after the call's stream has ended with
// `outcome`.
absl::StatusOr<Event> EndOfJob(const absl::Status& outcome, Event last,
                               const std::stop_token& stop) {
  // After the job's last event the end of the stream does not matter.
  if (EndsJob(last)) return last;
  if (stop.stop_requested()) return absl::CancelledError("the caller stopped");
  if (!outcome.ok()) return outcome;
  return absl::DataLossError(
      absl::StrCat("the stream ended before the job did, after event ", last.sequence()));
}

}  // namespace

bool EndsJob(const Event& event) {
  return event.has_completed() || event.has_failed() || event.has_cancelled();
}

VideoClient::VideoClient(const Connection& connection, RetryPolicy retries, BackoffClock& clock)
    : connection_(connection), retries_(std::move(retries)), clock_(clock) {}

Backoff VideoClient::NewBackoff(const std::stop_token& stop) const {
  return Backoff(retries_, clock_, stop);
}

absl::StatusOr<Event> VideoClient::Generate(const wan::v1::GenerationRequest& request,
                                            const EventCallback& on_event,
                                            const std::stop_token& stop) const {
  wan::v1::GenerateRequest message;
  *message.mutable_request() = request;
  Event last;
  const absl::Status outcome = CallStream<Service, Event>(
      connection_, stop,
      [&](Stub& stub, grpc::ClientContext* context) { return stub.Generate(context, message); },
      [&](const Event& event) {
        if (event.has_heartbeat()) return absl::OkStatus();
        if (!event.has_preview()) last = event;
        on_event(event);
        return absl::OkStatus();
      });
  return EndOfJob(outcome, std::move(last), stop);
}

absl::StatusOr<Event> VideoClient::WatchJob(const std::string& name, int64_t after_sequence,
                                            const EventCallback& on_event,
                                            const std::stop_token& stop) const {
  wan::v1::WatchJobRequest message;
  message.set_name(name);
  message.set_after_sequence(after_sequence);
  Backoff backoff = NewBackoff(stop);
  Event last;
  absl::Status outcome;
  do {
    outcome = CallStream<Service, Event>(
        connection_, stop,
        [&](Stub& stub, grpc::ClientContext* context) { return stub.WatchJob(context, message); },
        [&](const Event& event) {
          if (event.has_heartbeat()) return absl::OkStatus();
          // A preview has no sequence number.
          if (!event.has_preview()) {
            message.set_after_sequence(event.sequence());
            backoff.Reset();
            last = event;
          }
          on_event(event);
          return absl::OkStatus();
        });
  } while (!EndsJob(last) && backoff.ShouldRetry(outcome));
  return EndOfJob(outcome, std::move(last), stop);
}

absl::StatusOr<wan::v1::Job> VideoClient::CreateJob(const wan::v1::GenerationRequest& request,
                                                    const std::stop_token& stop) const {
  wan::v1::CreateJobRequest message;
  *message.mutable_request() = request;
  return CallUnary<Service>(connection_, stop, &Stub::CreateJob, message);
}

absl::StatusOr<wan::v1::Job> VideoClient::GetJob(const std::string& name,
                                                 const std::stop_token& stop) const {
  wan::v1::GetJobRequest message;
  message.set_name(name);
  return CallUnary<Service>(connection_, stop, &Stub::GetJob, message);
}

absl::StatusOr<wan::v1::ListJobsResponse> VideoClient::ListJobs(
    const wan::v1::ListJobsRequest& request, const std::stop_token& stop) const {
  return CallUnary<Service>(connection_, stop, &Stub::ListJobs, request);
}

absl::StatusOr<wan::v1::Job> VideoClient::CancelJob(const std::string& name,
                                                    const std::stop_token& stop) const {
  wan::v1::CancelJobRequest message;
  message.set_name(name);
  return CallUnary<Service>(connection_, stop, &Stub::CancelJob, message);
}

absl::StatusOr<wan::v1::QuoteResponse> VideoClient::Quote(const wan::v1::GenerationRequest& request,
                                                          const std::stop_token& stop) const {
  wan::v1::QuoteRequest message;
  *message.mutable_request() = request;
  return CallUnary<Service>(connection_, stop, &Stub::Quote, message);
}

absl::StatusOr<wan::v1::Usage> VideoClient::GetUsage(const std::string& principal,
                                                     const std::stop_token& stop) const {
  wan::v1::GetUsageRequest message;
  message.set_principal(principal);
  return CallUnary<Service>(connection_, stop, &Stub::GetUsage, message);
}

absl::StatusOr<wan::v1::SubmitBatchResponse> VideoClient::SubmitBatch(
    const wan::v1::SubmitBatchRequest& request, const std::stop_token& stop) const {
  return CallUnary<Service>(connection_, stop, &Stub::SubmitBatch, request);
}

absl::StatusOr<wan::v1::Job> VideoClient::UpdateJob(const wan::v1::UpdateJobRequest& request,
                                                    const std::stop_token& stop) const {
  return CallUnary<Service>(connection_, stop, &Stub::UpdateJob, request);
}

absl::Status VideoClient::DeleteJob(const std::string& name, const std::stop_token& stop) const {
  wan::v1::DeleteJobRequest message;
  message.set_name(name);
  return CallUnary<Service>(connection_, stop, &Stub::DeleteJob, message).status();
}

absl::Status VideoClient::DeleteArtifact(const std::string& name,
                                         const std::stop_token& stop) const {
  wan::v1::DeleteArtifactRequest message;
  message.set_name(name);
  return CallUnary<Service>(connection_, stop, &Stub::DeleteArtifact, message).status();
}

absl::StatusOr<wan::v1::JobReport> VideoClient::GetReport(const std::string& name,
                                                          const std::stop_token& stop) const {
  wan::v1::GetReportRequest message;
  message.set_job(name);
  return CallUnary<Service>(connection_, stop, &Stub::GetReport, message);
}

absl::StatusOr<wan::v1::Receipt> VideoClient::GetReceipt(const std::string& name,
                                                         const std::stop_token& stop) const {
  wan::v1::GetReceiptRequest message;
  message.set_job(name);
  return CallUnary<Service>(connection_, stop, &Stub::GetReceipt, message);
}

absl::Status VideoClient::ReadArtifact(
    const std::string& name, uint64_t offset,
    const std::function<absl::Status(const wan::v1::DownloadArtifactResponse&)>& on_chunk,
    const std::stop_token& stop) const {
  wan::v1::DownloadArtifactRequest message;
  message.set_name(name);
  message.set_offset(offset);
  return CallStream<Service, wan::v1::DownloadArtifactResponse>(
      connection_, stop,
      [&](Stub& stub, grpc::ClientContext* context) {
        return stub.DownloadArtifact(context, message);
      },
      on_chunk);
}

}  // namespace wan::client
