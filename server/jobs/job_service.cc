#include "server/jobs/job_service.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/job_update.h"
#include "server/conversion/names.h"
#include "server/conversion/validation.h"
#include "server/jobs/engine_call.h"
#include "server/jobs/job_service_parts.h"
#include "server/jobs/job_table.h"
#include "server/jobs/list_query.h"
#include "server/jobs/receipts.h"
#include "server/jobs/request_identity.h"
#include "server/jobs/time_estimator.h"
#include "server/quota/stored_bytes.h"
#include "server/store/digest.h"

namespace wan::server {
namespace {

constexpr int kMaxBatch = 100;
constexpr char kDeadlineExceeded[] = "deadline exceeded";

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

absl::StatusOr<std::unique_ptr<JobService>> JobService::Open(const JobServiceOptions& options,
                                                             Engine& engine, Clock& clock) {
  return Open(options, std::vector<Engine*>{&engine}, clock);
}

absl::StatusOr<std::unique_ptr<JobService>> JobService::Open(const JobServiceOptions& options,
                                                             const std::vector<Engine*>& engines,
                                                             Clock& clock) {
  auto owned = std::make_unique<Parts>(options, engines, clock);
  Parts& parts = *owned;
  const absl::Status opened = parts.store.Reopen();
  if (!opened.ok() && ReasonOf(opened) != kReasonStorageUnavailable) return opened;
  if (parts.store.opened()) {
    const absl::Status status = parts.Recover();
    if (!parts.recovered) return status;
  }
  parts.storage.Report(parts.ProbeStorage());
  parts.timer.Start([&parts](const std::string& job) {
    parts.EndJob(job, StopCause::kDeadline, kDeadlineExceeded);
  });
  for (int group = 0; group < parts.groups.size(); ++group) {
    Executor& executor = parts.groups.executor(group);
    executor.Post(
        {[&parts, group, folder = options.data_dir] { parts.CheckDevice(group, folder); }, [] {}});
    executor.Start([&parts, group] { return parts.RunNext(group); });
  }
  parts.storage.Start({[&parts] { return parts.ProbeStorage(); },
                       [&parts](const absl::Status& status) {
                         for (StateListener* listener : parts.listeners) {
                           listener->OnStorage(status);
                         }
                         if (status.ok()) parts.groups.WakeAll();
                       }});
  parts.retention.Start();
  return std::unique_ptr<JobService>(new JobService(std::move(owned)));
}

JobService::JobService(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

JobService::~JobService() { Stop(StopMode::kRequeue, absl::ZeroDuration()); }

ModelRegistry& JobService::models() { return parts_->models; }

WebhookOutbox& JobService::webhooks() { return parts_->store; }

absl::Status JobService::CheckProgress() const { return parts_->progress.Check(); }

JobStats JobService::Stats() const {
  JobStats stats = parts_->table.Stats();
  stats.storage_writable = parts_->storage.status().ok();
  stats.draining = parts_->drainer.draining();
  stats.job_watchers = parts_->log->watchers();
  stats.disk_free_bytes = parts_->disk.free_bytes();
  stats.disk_reserved_bytes = parts_->disk.reserved_bytes();
  return stats;
}

StorageStats JobService::StorageNow() const { return parts_->StorageNow(); }

absl::StatusOr<wan::v1::Usage> JobService::UsageOf(const std::string& principal) const {
  wan::v1::Usage usage = parts_->table.UsageOf(principal);
  *usage.mutable_quota() = parts_->quotas.Of(principal);
  const absl::StatusOr<uint64_t> stored = StoredBytesOf(parts_->store, principal);
  if (!stored.ok()) return stored.status();
  usage.set_stored_bytes(*stored);
  return usage;
}

void JobService::QuotasChanged() { parts_->groups.WakeAll(); }

absl::StatusOr<JobService::Created> JobService::Create(const wan::v1::GenerationRequest& asked,
                                                       bool tied_to_caller,
                                                       const std::string& owner) {
  absl::StatusOr<Created> created = CreateOrJoin(asked, tied_to_caller, owner);
  parts_->TellIfRejected(created.status(), 1);
  return created;
}

absl::StatusOr<wan::v1::SubmitBatchResponse> JobService::SubmitBatch(
    const wan::v1::SubmitBatchRequest& batch, const std::string& owner) {
  absl::StatusOr<wan::v1::SubmitBatchResponse> accepted = AcceptBatch(batch, owner);
  parts_->TellIfRejected(accepted.status(), std::max(batch.requests_size(), 1));
  return accepted;
}

absl::StatusOr<JobService::Created> JobService::CreateOrJoin(
    const wan::v1::GenerationRequest& asked, bool tied_to_caller, const std::string& owner) {
  const std::vector<FieldViolation> too_large = ValidateSizes(asked);
  if (!too_large.empty()) return InvalidFields(too_large);
  const CanonicalRequest canonical(asked);
  const wan::v1::GenerationRequest& request = *canonical;
  const std::string digest = DigestOf(request);
  const std::string& request_id = request.request_id();
  if (request_id.empty() || !ValidateRequestId(request).empty()) {
    return CreateNew(request, digest, tied_to_caller, owner);
  }
  parts_->request_ids.Lock(owner, request_id);
  const absl::Cleanup unlock = [&] { parts_->request_ids.Unlock(owner, request_id); };
  const absl::StatusOr<std::optional<StoredJob>> existing = FindExisting(request, digest, owner);
  if (!existing.ok()) return existing.status();
  if (!existing->has_value()) return CreateNew(request, digest, tied_to_caller, owner);
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
                                                          const std::string& owner) {
  absl::StatusOr<NewJob> prepared = Prepare(request, digest, owner);
  if (!prepared.ok()) return prepared.status();
  prepared->stored.tied_to_caller = tied_to_caller;
  std::vector<NewJob> jobs;
  jobs.push_back(*std::move(prepared));
  absl::StatusOr<std::vector<wan::v1::Job>> accepted = Accept(std::move(jobs));
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
                                           const std::string& digest, const std::string& owner) {
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
    const wan::v1::SubmitBatchRequest& batch, const std::string& owner) {
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
  absl::Cleanup unuse = [&] {
    for (const NewJob& job : prepared) {
      parts_->models.RemoveJob(job.stored.job.request().model());
    }
  };
  absl::Status refused;
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
    absl::StatusOr<NewJob> job = Prepare(request, digests[index], owner);
    if (job.ok()) {
      prepared.push_back(*std::move(job));
    } else if (FieldViolationsOf(job.status()).empty()) {
      refused = job.status();
    } else {
      add(i, FieldViolationsOf(job.status()));
    }
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

absl::StatusOr<wan::v1::Job> JobService::Update(const wan::v1::UpdateJobRequest& request) {
  const absl::StatusOr<JobUpdate> update = ParseJobUpdate(request, parts_->clock.Now());
  if (!update.ok()) return update.status();
  std::optional<wan::v1::Job> live = parts_->table.Update(
      update->job, [&](wan::v1::GenerationRequest& values) { update->ApplyTo(values); });
  if (live.has_value()) {
    if (absl::Status stored = parts_->log->Flush(); !stored.ok()) {
      return StorageUnavailableError(stored);
    }
    return *std::move(live);
  }
  absl::StatusOr<wan::v1::Job> ended = parts_->ended_jobs.Change(
      update->job, /*labels=*/true, [&](wan::v1::Job& job) -> absl::Status {
        if (update->NeedsUnended()) {
          return WithReason(absl::FailedPreconditionError(absl::StrCat(
                                job.name(), " has ended (", wan::v1::JobState_Name(job.state()),
                                "); only its labels can still change")),
                            kReasonJobEnded);
        }
        update->ApplyTo(*job.mutable_request());
        return absl::OkStatus();
      });
  if (ended.ok()) parts_->retention.policy().SetExpireTime(*ended);
  return ended;
}

absl::Status JobService::Delete(std::string_view name) {
  absl::Status valid = CheckJobName(name, "name");
  if (!valid.ok()) return valid;
  return parts_->ended_jobs.Delete(std::string(name));
}

absl::Status JobService::DeleteArtifact(std::string_view name) {
  const absl::StatusOr<ArtifactRef> ref = ParseArtifactName(name, "name");
  if (!ref.ok()) return ref.status();
  return parts_->ended_jobs.DeleteArtifact(*ref);
}

absl::StatusOr<wan::v1::Job> JobService::Get(std::string_view name) const {
  absl::Status valid = CheckJobName(name, "name");
  if (!valid.ok()) return valid;
  std::optional<wan::v1::Job> job = parts_->table.Find(std::string(name));
  if (!job.has_value()) {
    absl::StatusOr<StoredJob> stored = parts_->store.Get(name);
    if (!stored.ok()) return stored.status();
    job = std::move(stored->job);
  }
  parts_->retention.policy().SetExpireTime(*job);
  return *std::move(job);
}

absl::StatusOr<std::string> JobService::OwnerOf(std::string_view name,
                                                std::string_view field) const {
  absl::Status valid = CheckJobName(name, field);
  if (!valid.ok()) return valid;
  absl::StatusOr<wan::v1::Job> job = Get(name);
  if (!job.ok()) return job.status();
  return job->owner();
}

absl::StatusOr<wan::v1::ListJobsResponse> JobService::List(
    const wan::v1::ListJobsRequest& request, const std::optional<std::string>& owner) const {
  const absl::StatusOr<JobQuery> query = QueryOf(request, owner);
  if (!query.ok()) return query.status();
  // The store compares the states, the live jobs below are what the caller sees: flush, so that
  // both agree. If the store refuses to write, the list shows what it has.
  parts_->log->Flush().IgnoreError();
  const absl::StatusOr<JobPage> page = parts_->store.List(*query);
  if (!page.ok()) return page.status();
  wan::v1::ListJobsResponse response;
  for (const StoredJob& stored : page->jobs) {
    std::optional<wan::v1::Job> live = parts_->table.Find(stored.job.name());
    wan::v1::Job& job = *response.add_jobs();
    job = live.has_value() ? *std::move(live) : stored.job;
    parts_->retention.policy().SetExpireTime(job);
  }
  if (page->next.has_value()) response.set_next_page_token(PageTokenOf(request, *page->next));
  return response;
}

absl::StatusOr<wan::v1::Job> JobService::Cancel(std::string_view name, std::string_view reason) {
  absl::Status valid = CheckJobName(name, "name");
  if (!valid.ok()) return valid;
  parts_->EndJob(std::string(name), StopCause::kCancelled, reason);
  parts_->log->Flush().IgnoreError();  // the job ends in any case; the listeners are told
  return Get(name);
}

void JobService::CallerWentAway(const std::string& name, bool deadline_passed) {
  if (!parts_->callers.Leave(name)) return;
  const std::optional<wan::v1::Job> job = parts_->table.Find(name);
  if (job.has_value() && !deadline_passed && !job->request().request_id().empty() &&
      parts_->callers.grace() > absl::ZeroDuration()) {
    parts_->callers.Await(name);
    return;
  }
  // Somebody else may have joined it since.
  if (!parts_->callers.Forget(name)) return;
  parts_->EndJob(name, StopCause::kCallerGone,
                 deadline_passed ? kDeadlineExceeded : kCallerWentAway);
}

void JobService::CallerDone(const std::string& name) {
  if (parts_->callers.Leave(name)) parts_->callers.Forget(name);
}

absl::StatusOr<std::unique_ptr<EventCursor>> JobService::Watch(std::string_view name,
                                                               int64_t after_sequence,
                                                               std::function<void()> notify) {
  if (after_sequence < 0) {
    return InvalidFields({{"after_sequence", absl::StrCat("must be 0 (from the start) or the "
                                                          "sequence of an event, got ",
                                                          after_sequence)}});
  }
  const absl::StatusOr<wan::v1::Job> job = Get(name);
  if (!job.ok()) return job.status();
  return parts_->log->Watch(job->name(), after_sequence, std::move(notify));
}

absl::StatusOr<wan::v1::JobReport> JobService::Report(std::string_view name) const {
  absl::Status valid = CheckJobName(name, "job");
  if (!valid.ok()) return valid;
  std::optional<wan::v1::JobReport> live = parts_->table.FindReport(std::string(name));
  if (live.has_value()) return *std::move(live);
  absl::StatusOr<wan::v1::JobReport> stored = parts_->store.Report(name);
  if (!absl::IsNotFound(stored.status())) return stored;
  const absl::StatusOr<wan::v1::Job> job = Get(name);
  if (!job.ok()) return job.status();
  return WithReason(absl::NotFoundError(absl::StrCat(job->name(),
                                                     " has no report yet: its first attempt has "
                                                     "not begun")),
                    kReasonReportNotFound);
}

absl::StatusOr<wan::v1::Receipt> JobService::Receipt(std::string_view name) const {
  absl::Status valid = CheckJobName(name, "job");
  if (!valid.ok()) return valid;
  parts_->log->Flush().IgnoreError();  // what is refused is shown as far as it is there
  const absl::StatusOr<wan::v1::Job> job = Get(name);
  if (!job.ok()) return job.status();
  const absl::StatusOr<std::vector<JobFile>> files = parts_->store.Files(name);
  if (!files.ok()) return files.status();
  return MakeReceipt(*job, *files, parts_->digests);
}

absl::StatusOr<JobService::OpenedArtifact> JobService::OpenArtifact(std::string_view name,
                                                                    uint64_t offset) const {
  const absl::StatusOr<ArtifactRef> ref = ParseArtifactName(name, "name");
  if (!ref.ok()) return ref.status();
  const absl::StatusOr<wan::v1::Job> job = Get(ref->job);
  if (!job.ok()) return job.status();
  auto opened = parts_->ended_jobs.Open(*job, *ref, offset);
  if (!opened.ok()) return opened.status();
  return OpenedArtifact{std::move(opened->first), std::move(opened->second)};
}

void JobService::Drain(StopMode mode, absl::Duration timeout,
                       std::function<void(const wan::v1::DrainResponse&)> done) {
  parts_->drainer.Begin(mode, timeout, std::move(done));
}

void JobService::Stop(StopMode mode, absl::Duration grace) {
  absl::MutexLock lock(&parts_->stop_mutex);
  if (parts_->stopped) return;
  parts_->stopped = true;
  parts_->storage.Stop();
  parts_->digests.Stop();
  parts_->retention.Stop();
  parts_->drainer.Stop(mode, grace);
  parts_->groups.Stop();
  parts_->timer.Stop();
  parts_->callers.Stop();
  parts_->log->Flush().IgnoreError();  // the listeners have been told of the problem
  parts_->log->Close();
}

}  // namespace wan::server
