// How requests become jobs, or the answer what they would cost.
#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/conversion/validation.h"
#include "server/jobs/engine_call.h"
#include "server/jobs/image_check.h"
#include "server/jobs/job_service.h"
#include "server/jobs/job_service_parts.h"
#include "server/jobs/job_table.h"
#include "server/jobs/request_identity.h"
#include "server/jobs/time_estimator.h"
#include "server/quota/stored_bytes.h"
#include "server/store/digest.h"

namespace wan::server {
namespace {

constexpr int kMaxBatch = 100;

// Appends the violations of `more` whose field has none yet.
std::vector<FieldViolation> Merge(std::vector<FieldViolation> violations,
                                  const std::vector<FieldViolation>& more) {
  const size_t own = violations.size();
  for (const FieldViolation& violation : more) {
    const auto end = violations.begin() + static_cast<std::ptrdiff_t>(own);
    const bool known = std::any_of(violations.begin(), end, [&](const FieldViolation& other) {
      return other.field == violation.field;
    });
    if (!known) violations.push_back(violation);
  }
  return violations;
}

// Joins the violations found so far with those of `status`; returns `status` if there are none.
absl::Status WithViolations(const std::vector<FieldViolation>& violations,
                            const absl::Status& status) {
  const std::vector<FieldViolation> all = Merge(violations, FieldViolationsOf(status));
  return all.empty() ? status : InvalidFields(all);
}

}  // namespace

absl::StatusOr<JobService::Created> JobService::Create(const wan::v1::GenerationRequest& asked,
                                                       bool tied_to_caller,
                                                       const std::string& owner,
                                                       const wan::v1::TraceContext& trace) {
  absl::StatusOr<Created> created = CreateOrJoin(asked, tied_to_caller, owner, trace);
  parts_->TellIfRejected(created.status(), 1);
  return created;
}

absl::StatusOr<wan::v1::SubmitBatchResponse> JobService::SubmitBatch(
    const wan::v1::SubmitBatchRequest& batch, const std::string& owner,
    const wan::v1::TraceContext& trace) {
  absl::StatusOr<wan::v1::SubmitBatchResponse> accepted = AcceptBatch(batch, owner, trace);
  parts_->TellIfRejected(accepted.status(), std::max(batch.requests_size(), 1));
  return accepted;
}

absl::StatusOr<JobService::Created> JobService::CreateOrJoin(
    const wan::v1::GenerationRequest& asked, bool tied_to_caller, const std::string& owner,
    const wan::v1::TraceContext& trace) {
  const std::vector<FieldViolation> too_large = ValidateSizes(asked);
  if (!too_large.empty()) return InvalidFields(too_large);
  const CanonicalRequest canonical(asked);
  const wan::v1::GenerationRequest& request = *canonical;
  const std::string digest = DigestOf(request);
  const std::string& request_id = request.request_id();
  if (request_id.empty() || !ValidateRequestId(request).empty()) {
    return CreateNew(request, digest, tied_to_caller, owner, trace);
  }
  parts_->request_ids.Lock(owner, request_id);
  const absl::Cleanup unlock = [&] { parts_->request_ids.Unlock(owner, request_id); };
  const absl::StatusOr<std::optional<StoredJob>> existing = FindExisting(request, digest, owner);
  if (!existing.ok()) return existing.status();
  if (!existing->has_value()) return CreateNew(request, digest, tied_to_caller, owner, trace);
  const absl::StatusOr<wan::v1::Job> job = Get((*existing)->job.name());
  if (!job.ok()) return job.status();
  const bool holds = tied_to_caller && (*existing)->tied_to_caller && !IsFinal(job->state());
  if (holds) parts_->callers.Join(job->name());
  return Created{*job, /*created=*/false, holds};
}

absl::StatusOr<std::optional<StoredJob>> JobService::FindExisting(
    const wan::v1::GenerationRequest& request, const std::string& digest,
    const std::string& owner) const {
  const std::string& request_id = request.request_id();
  absl::StatusOr<StoredJob> existing = parts_->store.FindByRequestId(owner, request_id);
  if (absl::IsNotFound(existing.status())) return std::nullopt;
  if (ReasonOf(existing.status()) == kReasonStorageUnavailable) {
    return StorageUnavailableError(existing.status());
  }
  if (!existing.ok()) return existing.status();
  if (existing->request_digest != digest) {
    return WithReason(absl::AlreadyExistsError(absl::StrCat(
                          "request_id '", request_id, "' belongs to ", existing->job.name(),
                          ", whose request differs from this one; repeat that request, "
                          "or choose another request_id")),
                      kReasonRequestIdReused);
  }
  return *std::move(existing);
}

absl::StatusOr<JobService::Created> JobService::CreateNew(const wan::v1::GenerationRequest& request,
                                                          const std::string& digest,
                                                          bool tied_to_caller,
                                                          const std::string& owner,
                                                          const wan::v1::TraceContext& trace) {
  absl::StatusOr<NewJob> prepared = Prepare(request, digest, owner, trace);
  if (!prepared.ok()) return prepared.status();
  prepared->stored.tied_to_caller = tied_to_caller;
  std::vector<NewJob> jobs;
  jobs.push_back(*std::move(prepared));
  CheckedJobs checked = CheckImagesHere(std::move(jobs));
  if (!checked.refused.empty()) {
    parts_->models.RemoveJob(request.model());
    return checked.refused.begin()->second;
  }
  absl::StatusOr<std::vector<wan::v1::Job>> accepted = Accept(std::move(checked.jobs));
  if (!accepted.ok()) return accepted.status();
  wan::v1::Job& job = accepted->front();
  if (tied_to_caller) parts_->callers.Join(job.name());
  return Created{std::move(job), /*created=*/true, tied_to_caller};
}

absl::StatusOr<JobService::Planned> JobService::PlanInUse(
    const wan::v1::GenerationRequest& request) const {
  std::vector<FieldViolation> violations = ValidateRequest(request, parts_->clock.Now());
  if (!request.webhook_url().empty()) {
    std::string problem = parts_->webhook_problem(request.webhook_url());
    if (!problem.empty()) violations.push_back({"webhook_url", std::move(problem)});
  }
  const std::string& model = request.model();
  if (model.empty()) return InvalidFields(violations);
  absl::Status usable = parts_->models.AddJob(model);
  if (!usable.ok()) return WithViolations(violations, usable);
  absl::Cleanup unuse = [&] { parts_->models.RemoveJob(model); };

  std::shared_ptr<const std::string> image;
  // An image that is given but empty is a violation already.
  if (!request.image().empty()) image = std::make_shared<const std::string>(request.image());
  // Any of these groups may run the job. They differ only if their cards do.
  std::optional<GenerationPlan> plan;
  for (const int group : parts_->models.ReadyIn(model)) {
    absl::StatusOr<GenerationPlan> planned = CallEngine(
        [&] { return parts_->groups.engine(group).Plan(ToEngineRequest(request, image)); });
    if (!planned.ok()) return WithViolations(violations, planned.status());
    if (!plan.has_value()) plan = *std::move(planned);
  }
  if (!plan.has_value()) return WithViolations(violations, DeviceGoneError());  // just now
  if (!violations.empty()) return InvalidFields(violations);
  std::move(unuse).Cancel();
  return Planned{*std::move(plan), std::move(image)};
}

absl::StatusOr<NewJob> JobService::Prepare(const wan::v1::GenerationRequest& request,
                                           const std::string& digest, const std::string& owner,
                                           const wan::v1::TraceContext& trace) {
  if (absl::Status storage = parts_->storage.status(); !storage.ok()) {
    return StorageUnavailableError(storage);
  }
  absl::StatusOr<Planned> planned = PlanInUse(request);
  if (!planned.ok()) return planned.status();
  NewJob job;
  job.image = std::move(planned->image);
  job.work = std::make_shared<const PlannedWork>(planned->plan.stages);
  job.stored.request_digest = digest;
  job.stored.job.set_name(NewJobName());
  job.stored.job.set_owner(owner);
  if (!trace.trace_id().empty()) {
    *job.stored.job.mutable_trace() = trace;
  } else if (parts_->new_trace != nullptr) {
    *job.stored.job.mutable_trace() = parts_->new_trace();
  }
  if (job.image != nullptr) job.stored.job.set_image_sha256(Sha256Hex(*job.image));
  wan::v1::GenerationRequest& resolved = *job.stored.job.mutable_request();
  resolved = ToProto(planned->plan.request);
  resolved.set_priority(request.priority());
  if (request.has_deadline()) *resolved.mutable_deadline() = request.deadline();
  resolved.set_request_id(request.request_id());
  resolved.set_webhook_url(request.webhook_url());
  *resolved.mutable_labels() = request.labels();
  return job;
}

CheckedJobs JobService::CheckImagesHere(std::vector<NewJob> jobs) const {
  CheckedJobs result;
  // It needs no device, so that any group's engine will do.
  CheckImages(
      parts_->groups.engine(0), std::move(jobs), [](const auto& step) { step(absl::OkStatus()); },
      [&](CheckedJobs checked) { result = std::move(checked); });
  return result;
}

absl::StatusOr<std::vector<wan::v1::Job>> JobService::Accept(std::vector<NewJob> jobs) {
  std::vector<std::pair<std::string, std::string>> names;  // of jobs and their models
  const std::string& owner = jobs.front().stored.job.owner();
  absl::Status room = CheckStoredBytes(parts_->store, parts_->quotas.Of(owner), owner);
  for (const NewJob& job : jobs) {
    names.emplace_back(job.stored.job.name(), job.stored.job.request().model());
    if (room.ok()) room = parts_->disk.Take(job.stored.job);
  }
  using Accepted = absl::StatusOr<std::vector<wan::v1::Job>>;
  Accepted accepted = room.ok() ? parts_->table.Accept(std::move(jobs)) : Accepted(room);
  if (accepted.ok()) {
    parts_->groups.WakeAll();
    return accepted;
  }
  for (const auto& [job, model] : names) {
    parts_->disk.Release(job);
    parts_->models.RemoveJob(model);
  }
  parts_->ReportIfStorage(accepted.status());
  if (ReasonOf(accepted.status()) == kReasonStorageUnavailable) {
    return StorageUnavailableError(accepted.status());
  }
  return accepted;
}

absl::StatusOr<wan::v1::SubmitBatchResponse> JobService::AcceptBatch(
    const wan::v1::SubmitBatchRequest& batch, const std::string& owner,
    const wan::v1::TraceContext& trace) {
  if (batch.requests().empty() || batch.requests_size() > kMaxBatch) {
    return InvalidFields({{"requests", absl::StrCat("has ", batch.requests_size(),
                                                    " entries; must have 1 to ", kMaxBatch)}});
  }
  std::vector<FieldViolation> violations;
  const auto add = [&](int i, const std::vector<FieldViolation>& more) {
    for (const FieldViolation& violation : more) {
      violations.push_back(
          {absl::StrCat("requests[", i, "].", violation.field), violation.description});
    }
  };
  std::map<std::string, int> ids;  // in the order in which they are locked
  std::vector<std::string> digests;
  for (int i = 0; i < batch.requests_size(); ++i) {
    const wan::v1::GenerationRequest& request = batch.requests(i);
    std::vector<FieldViolation> wrong = ValidateSizes(request);
    if (wrong.empty()) wrong = ValidateRequestId(request);
    add(i, wrong);
    if (wrong.empty() && !request.request_id().empty()) {
      const auto [first, added] = ids.emplace(request.request_id(), i);
      if (!added) {
        add(i, {{"request_id", absl::StrCat("is also that of requests[", first->second,
                                            "]; each needs its own, or none")}});
      }
    }
    digests.push_back(wrong.empty() ? DigestOf(*CanonicalRequest(request)) : std::string());
  }
  if (!violations.empty()) return InvalidFields(violations);

  for (const auto& [id, index] : ids) parts_->request_ids.Lock(owner, id);
  const absl::Cleanup unlock = [&] {
    for (const auto& [id, index] : ids) parts_->request_ids.Unlock(owner, id);
  };
  std::vector<std::string> names(digests.size());  // of jobs that exist
  std::vector<NewJob> prepared;
  std::vector<int> places;  // of those in the batch
  absl::Cleanup unuse = [&] {
    for (const NewJob& job : prepared) {
      parts_->models.RemoveJob(job.stored.job.request().model());
    }
  };
  absl::Status refused;
  const auto refuse = [&](int i, const absl::Status& status) {
    const std::vector<FieldViolation> wrong = FieldViolationsOf(status);
    if (wrong.empty()) refused.Update(status);
    add(i, wrong);
  };
  for (int i = 0; i < batch.requests_size() && refused.ok(); ++i) {
    const CanonicalRequest canonical(batch.requests(i));
    const wan::v1::GenerationRequest& request = *canonical;
    const auto index = static_cast<size_t>(i);
    if (!request.request_id().empty()) {
      const absl::StatusOr<std::optional<StoredJob>> existing =
          FindExisting(request, digests[index], owner);
      if (!existing.ok()) return existing.status();
      if (existing->has_value()) {
        names[index] = (*existing)->job.name();
        continue;
      }
    }
    absl::StatusOr<NewJob> job = Prepare(request, digests[index], owner, trace);
    if (job.ok()) {
      prepared.push_back(*std::move(job));
      places.push_back(i);
    } else {
      refuse(i, job.status());
    }
  }
  if (violations.empty() && refused.ok()) {
    CheckedJobs checked = CheckImagesHere(std::move(prepared));
    prepared = std::move(checked.jobs);
    for (const auto& [job, status] : checked.refused) refuse(places[job], status);
  }
  if (!violations.empty()) return InvalidFields(violations);
  if (!refused.ok()) return refused;

  std::vector<wan::v1::Job> accepted;
  if (!prepared.empty()) {
    absl::StatusOr<std::vector<wan::v1::Job>> jobs = Accept(std::exchange(prepared, {}));
    if (!jobs.ok()) return jobs.status();
    accepted = *std::move(jobs);
  }
  wan::v1::SubmitBatchResponse response;
  auto next = accepted.begin();
  for (const std::string& name : names) {
    wan::v1::Job& job = *response.add_jobs();
    if (name.empty()) {
      job = std::move(*next++);
    } else {
      absl::StatusOr<wan::v1::Job> existing = Get(name);
      if (!existing.ok()) return existing.status();
      job = *std::move(existing);
    }
    job.clear_request();  // a hundred of the largest are more than a client takes
  }
  return response;
}

absl::StatusOr<wan::v1::QuoteResponse> JobService::Quote(const wan::v1::QuoteRequest& quote,
                                                         const std::string& owner) const {
  const std::vector<FieldViolation> too_large = ValidateSizes(quote.request());
  if (!too_large.empty()) return InvalidFields(too_large);
  const CanonicalRequest canonical(quote.request());
  const wan::v1::GenerationRequest& request = *canonical;
  const absl::StatusOr<Planned> planned = PlanInUse(request);
  if (!planned.ok()) return planned.status();
  const std::string& model = request.model();
  const absl::Cleanup unuse = [&] { parts_->models.RemoveJob(model); };
  const GenerationPlan& plan = planned->plan;

  wan::v1::QuoteResponse response;
  *response.mutable_request() = ToProto(plan.request);
  response.set_steps(static_cast<int>(plan.steps.size()));
  double flops = 0;
  for (const StagePlan& stage : plan.stages) flops += stage.flops.value_or(0);
  response.set_flops(flops);
  if (plan.peak_device_bytes > 0) response.set_device_memory_bytes(plan.peak_device_bytes);
  if (plan.peak_host_bytes > 0) response.set_host_memory_bytes(plan.peak_host_bytes);

  const TimeEstimator::Spread spread = parts_->estimator.ExpectedSpread(model);
  const auto estimate = [&](double seconds) {
    wan::v1::TimeEstimate result;
    result.set_p50_seconds(seconds * spread.p50);
    result.set_p90_seconds(seconds * spread.p90);
    return result;
  };
  const JobTable::Outlook outlook = parts_->table.OutlookFor(owner, request.priority());
  response.set_jobs_ahead(outlook.jobs_ahead);
  if (outlook.time.has_value()) {
    *response.mutable_queue_time() = estimate(absl::ToDoubleSeconds(*outlook.time));
  }
  const std::optional<double> warm = parts_->estimator.Expected(model, PlannedWork(plan.stages));
  if (!warm.has_value()) return response;
  *response.mutable_warm_time() = estimate(*warm);
  const std::optional<absl::Duration> loading = parts_->models.LoadTime(model);
  if (loading.has_value()) {
    *response.mutable_cold_time() = estimate(*warm + absl::ToDoubleSeconds(*loading));
  }
  return response;
}

}  // namespace wan::server
