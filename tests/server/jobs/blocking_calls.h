// Calls of JobService that end by a callback, for tests: each returns when it has ended.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/jobs/job_service.h"
#include "server/jobs/turns.h"
#include "server/store/await.h"

namespace wan::server {

// The parameters are those of the calls of the same names. The service must outlive the object.
class BlockingCalls {
 public:
  explicit BlockingCalls(JobService& service) : service_(service) {}

  absl::StatusOr<JobService::Created> Create(const wan::v1::GenerationRequest& asked, bool tied,
                                             const std::string& owner = {},
                                             const wan::v1::TraceContext& trace = {}) {
    return AwaitPosted<absl::StatusOr<JobService::Created>>([&](const PostTask& post, auto done) {
      service_.Create(std::make_shared<const wan::v1::GenerationRequest>(asked),
                      {tied, owner, trace}, post, std::move(done));
    });
  }
  absl::StatusOr<wan::v1::SubmitBatchResponse> SubmitBatch(
      const wan::v1::SubmitBatchRequest& batch, const std::string& owner = {},
      const wan::v1::TraceContext& trace = {}) {
    return AwaitPosted<absl::StatusOr<wan::v1::SubmitBatchResponse>>(
        [&](const PostTask& post, auto done) {
          service_.SubmitBatch(std::make_shared<const wan::v1::SubmitBatchRequest>(batch),
                               {/*tied=*/false, owner, trace}, post, std::move(done));
        });
  }
  absl::StatusOr<wan::v1::Job> Update(const wan::v1::UpdateJobRequest& request) {
    return AwaitPosted<absl::StatusOr<wan::v1::Job>>(
        [&](const PostTask& post, auto done) { service_.Update(request, post, std::move(done)); });
  }
  absl::Status Delete(std::string_view name) {
    return AwaitPosted<absl::Status>(
        [&](const PostTask& post, auto done) { service_.Delete(name, post, std::move(done)); });
  }
  absl::Status DeleteArtifact(std::string_view name) {
    return AwaitPosted<absl::Status>([&](const PostTask& post, auto done) {
      service_.DeleteArtifact(name, post, std::move(done));
    });
  }
  absl::StatusOr<wan::v1::Job> Cancel(std::string_view name, std::string_view reason) {
    return AwaitDone<absl::StatusOr<wan::v1::Job>>(
        [&](auto done) { service_.Cancel(name, reason, std::move(done)); });
  }
  absl::StatusOr<wan::v1::UndrainResponse> Undrain() {
    return AwaitDone<absl::StatusOr<wan::v1::UndrainResponse>>(
        [&](auto done) { service_.Undrain(std::move(done)); });
  }
  // All steps of a list.
  absl::StatusOr<wan::v1::ListJobsResponse> List(
      const wan::v1::ListJobsRequest& request,
      const std::optional<std::string>& owner = std::nullopt) {
    const absl::StatusOr<std::unique_ptr<JobListing>> listing = service_.BeginList(request, owner);
    if (!listing.ok()) return listing.status();
    for (;;) {
      const absl::StatusOr<bool> complete = (*listing)->Step();
      if (!complete.ok()) return complete.status();
      if (*complete) return (*listing)->Take();
    }
  }

 private:
  JobService& service_;
};

}  // namespace wan::server
