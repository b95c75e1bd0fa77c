// Turns the requests of a batch into jobs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/conversion/validation.h"
#include "server/jobs/image_check.h"
#include "server/jobs/job_service.h"
#include "server/jobs/job_service_parts.h"
#include "server/jobs/request_identity.h"
#include "server/jobs/request_latents.h"
#include "server/jobs/turns.h"

namespace wan::server {
namespace {

constexpr int kMaxBatch = 100;

// Adds the violations of requests[index] of a batch.
void AddOfRequest(int index, const std::vector<FieldViolation>& more,
                  std::vector<FieldViolation>& violations) {
  for (const FieldViolation& violation : more) {
    violations.push_back(
        {absl::StrCat("requests[", index, "].", violation.field), violation.description});
  }
}

}  // namespace

// One call of SubmitBatch.
struct JobService::Batch {
  std::shared_ptr<const wan::v1::SubmitBatchRequest> asked;
  CallerFacts caller;
  std::vector<std::string> digests;   // the digest of each request
  std::vector<std::string> ids = {};  // request_ids of the batch, in ascending order
  std::vector<wan::v1::Job> existing =
      {};  // the job of each request; without a name if the request makes a new job
  std::vector<int> places = {};           // indices of the requests that make new jobs
  std::vector<HeldLatents> latents = {};  // the latents that each request names
};

void JobService::SubmitBatch(std::shared_ptr<const wan::v1::SubmitBatchRequest> asked,
                             CallerFacts caller, const PostTask& post, BatchDone done) {
  const int jobs = std::max(asked->requests_size(), 1);
  done = [parts = parts_.get(), jobs,
          done = std::move(done)](absl::StatusOr<wan::v1::SubmitBatchResponse> accepted) {
    parts->TellIfRejected(accepted.status(), jobs);
    done(std::move(accepted));
  };
  auto batch = std::make_shared<Batch>(Batch{std::move(asked), std::move(caller), {}});
  if (absl::Status checked = CheckBatch(*batch); !checked.ok()) return done(checked);
  std::vector<std::string> keys;
  for (const std::string& id : batch->ids) keys.push_back(TurnKeyOf(batch->caller.owner, id));
  parts_->turns.TakeAll(
      std::move(keys), post, [this, batch, done = std::move(done)](std::vector<Turns::Turn> turns) {
        AcceptBatch(batch, [turns = std::move(turns),
                            done](absl::StatusOr<wan::v1::SubmitBatchResponse> accepted) {
          done(std::move(accepted));
        });
      });
}

absl::Status JobService::CheckBatch(Batch& checked) {
  const wan::v1::SubmitBatchRequest& batch = *checked.asked;
  if (batch.requests().empty() || batch.requests_size() > kMaxBatch) {
    return InvalidFields({{"requests", absl::StrCat("has ", batch.requests_size(),
                                                    " entries; must have 1 to ", kMaxBatch)}});
  }
  std::vector<FieldViolation> violations;
  std::map<std::string, int> ids;
  for (int i = 0; i < batch.requests_size(); ++i) {
    const wan::v1::GenerationRequest& request = batch.requests(i);
    std::vector<FieldViolation> wrong = ValidateSizes(request);
    if (wrong.empty()) wrong = ValidateRequestId(request);
    AddOfRequest(i, wrong, violations);
    if (wrong.empty() && !request.request_id().empty()) {
      const auto [first, added] = ids.emplace(request.request_id(), i);
      if (!added) {
        AddOfRequest(i,
                     {{"request_id", absl::StrCat("is also that of requests[", first->second,
                                                  "]; each needs its own, or none")}},
                     violations);
      }
    }
    checked.digests.push_back(wrong.empty() ? DigestOf(*CanonicalRequest(request)) : std::string());
  }
  if (!violations.empty()) return InvalidFields(violations);

  for (const auto& [id, index] : ids) checked.ids.push_back(id);
  return absl::OkStatus();
}

absl::Status JobService::FindExistingOf(Batch& batch) const {
  batch.existing.resize(batch.digests.size());
  for (int i = 0; i < batch.asked->requests_size(); ++i) {
    const wan::v1::GenerationRequest& request = batch.asked->requests(i);
    const auto index = static_cast<size_t>(i);
    if (!request.request_id().empty()) {
      absl::StatusOr<std::optional<StoredJob>> existing =
          FindExisting(request, batch.digests[index], batch.caller.owner);
      if (!existing.ok()) return existing.status();
      if (existing->has_value()) {
        absl::StatusOr<wan::v1::Job> job = NowOf(**std::move(existing));
        if (!job.ok()) return job.status();
        batch.existing[index] = *std::move(job);
        continue;
      }
    }
    batch.places.push_back(i);
  }
  return absl::OkStatus();
}

absl::Status JobService::HoldLatentsOf(Batch& batch) const {
  batch.latents.resize(batch.digests.size());
  const auto& requests = batch.asked->requests();
  const JobReader reader = {batch.caller.owner, batch.caller.reads_all};
  if (std::any_of(batch.places.begin(), batch.places.end(),
                  [&](int place) { return NamesJobs(requests[place]); })) {
    absl::Status room = CheckRoom(reader.owner, static_cast<int>(batch.places.size()));
    if (!room.ok()) return room;
  }
  std::vector<FieldViolation> violations;
  uint64_t bytes = 0;
  int fit = 0;  // how many of the requests can be sent together, from the first on
  for (const int place : batch.places) {
    std::vector<FieldViolation> wrong;
    absl::StatusOr<NamedLatents> named = latents_.Find(requests[place], reader, wrong);
    if (!named.ok()) return named.status();
    AddOfRequest(place, wrong, violations);
    bytes += named->bytes();
    if (bytes <= kMostCallLatentsBytes) fit = place + 1;
    batch.latents[static_cast<size_t>(place)].named = *std::move(named);
  }
  if (bytes > kMostCallLatentsBytes) {
    violations.push_back(
        {"requests", absl::StrCat("name latents of together ", bytes, " bytes; must name at most ",
                                  kMostCallLatentsBytes, ", for example those of the first ", fit,
                                  " requests, with the others in further batches")});
  }
  if (!violations.empty()) return InvalidFields(violations);
  const absl::StatusOr<RequestLatents::Lease> lease = latents_.Hold(reader.owner, bytes);
  if (!lease.ok()) return lease.status();
  for (HeldLatents& held : batch.latents) held.lease = *lease;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NewJob>> JobService::PrepareBatch(Batch& batch) {
  if (absl::Status status = FindExistingOf(batch); !status.ok()) return status;
  if (absl::Status status = HoldLatentsOf(batch); !status.ok()) return status;
  std::vector<FieldViolation> violations;
  std::vector<NewJob> prepared;
  absl::Cleanup unuse = [&] {
    for (const NewJob& job : prepared) {
      parts_->models.RemoveJob(job.stored.job.request().model());
    }
  };
  for (const int place : batch.places) {
    const auto index = static_cast<size_t>(place);
    const CanonicalRequest canonical(batch.asked->requests(place));
    absl::StatusOr<NewJob> job =
        Prepare(*canonical, batch.digests[index], batch.caller, &batch.latents[index]);
    if (job.ok()) {
      prepared.push_back(*std::move(job));
    } else if (!FieldViolationsOf(job.status()).empty()) {
      AddOfRequest(place, FieldViolationsOf(job.status()), violations);
    } else if (violations.empty()) {
      return job.status();
    } else {
      break;
    }
  }
  batch.latents.clear();  // the files have the lease
  if (!violations.empty()) return InvalidFields(violations);
  std::move(unuse).Cancel();
  return prepared;
}

// Returns OK if all images of a batch are valid; otherwise why some were refused or not checked.
absl::Status JobService::RefusalOf(const Batch& batch, const CheckedJobs& checked) {
  std::vector<FieldViolation> violations;
  absl::Status other = checked.dropped;
  for (const auto& [job, status] : checked.refused) {
    const std::vector<FieldViolation> wrong = FieldViolationsOf(status);
    if (wrong.empty()) other.Update(status);
    AddOfRequest(batch.places[job], wrong, violations);
  }
  return violations.empty() ? other : InvalidFields(violations);
}

void JobService::AcceptBatch(const std::shared_ptr<Batch>& batch, BatchDone done) {
  absl::StatusOr<std::vector<NewJob>> prepared = PrepareBatch(*batch);
  if (!prepared.ok()) return done(prepared.status());
  const auto respond = [batch, done](absl::StatusOr<std::vector<wan::v1::Job>> jobs) {
    if (!jobs.ok()) return done(jobs.status());
    wan::v1::SubmitBatchResponse response;
    auto next = jobs->begin();
    for (const wan::v1::Job& known : batch->existing) {
      wan::v1::Job& job = *response.add_jobs();
      if (known.name().empty()) {
        job = std::move(*next++);
      } else {
        job = known;
      }
      job.clear_request();  // leave the request out: together the requests may exceed a client's
                            // message limit
    }
    done(std::move(response));
  };
  if (prepared->empty()) return respond(std::vector<wan::v1::Job>());
  CheckImagesOf(*std::move(prepared), batch->caller, [this, batch, respond](CheckedJobs checked) {
    if (absl::Status refused = RefusalOf(*batch, checked); !refused.ok()) return respond(refused);
    Accept(std::move(checked.jobs), respond);
  });
}

}  // namespace wan::server
