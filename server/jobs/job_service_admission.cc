// Turns requests into jobs or quotes.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/conversion/report.h"
#include "server/conversion/validation.h"
#include "server/jobs/engine_call.h"
#include "server/jobs/image_check.h"
#include "server/jobs/job_service.h"
#include "server/jobs/job_service_parts.h"
#include "server/jobs/request_identity.h"
#include "server/jobs/request_latents.h"
#include "server/jobs/time_estimator.h"
#include "server/jobs/turns.h"
#include "server/quota/stored_bytes.h"
#include "server/store/digest.h"
#include "server/store/input_links.h"

namespace wan::server {
namespace {

// Adds to `violations` the entries of `more` whose field has no violation yet.
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

// Returns INVALID_ARGUMENT with `violations` and those of `status`, or just `status` if
// `violations` is empty.
absl::Status WithViolations(const std::vector<FieldViolation>& violations,
                            const absl::Status& status) {
  const std::vector<FieldViolation> all = Merge(violations, FieldViolationsOf(status));
  return all.empty() ? status : InvalidFields(all);
}

// Links the artifacts that the jobs name (`links` is null: there are no links), and clears
// `inputs.artifacts` of those that are not linked. Syncs once for all jobs.
void LinkInputs(const InputLinks* links, std::vector<NewJob>& jobs) {
  bool linked = false;
  if (links != nullptr) {
    for (NewJob& job : jobs) {
      links->Add(job.stored.job.name(), job.inputs);
      linked = linked || !job.inputs.artifacts.empty();
    }
    if (!linked || links->Sync().ok()) return;
  }
  for (NewJob& job : jobs) {
    if (links != nullptr) links->Remove(job.stored.job.name());
    job.inputs.artifacts.clear();
  }
}

}  // namespace

// One call of Create.
struct JobService::Asked {
  Asked(std::shared_ptr<const wan::v1::GenerationRequest> request_in, CallerFacts caller_in)
      : sent(std::move(request_in)),
        canonical(*sent),
        digest(DigestOf(*canonical)),
        caller(std::move(caller_in)) {}

  const std::shared_ptr<const wan::v1::GenerationRequest> sent;
  const CanonicalRequest canonical;  // the canonical form of `sent`
  const std::string digest;
  const CallerFacts caller;
};

void JobService::Create(std::shared_ptr<const wan::v1::GenerationRequest> asked, CallerFacts caller,
                        const PostTask& post, CreateDone done) {
  done = [parts = parts_.get(), done = std::move(done)](absl::StatusOr<Created> created) {
    parts->TellIfRejected(created.status(), 1);
    done(std::move(created));
  };
  const std::vector<FieldViolation> too_large = ValidateSizes(*asked);
  if (!too_large.empty()) return done(InvalidFields(too_large));
  const auto held = std::make_shared<const Asked>(std::move(asked), std::move(caller));
  const wan::v1::GenerationRequest& request = *held->canonical;
  const std::string& request_id = request.request_id();
  if (request_id.empty() || !ValidateRequestId(request).empty()) {
    return CreateNew(*held, std::move(done));
  }
  parts_->turns.Take(TurnKeyOf(held->caller.owner, request_id), post,
                     [this, held, done = std::move(done)](const Turns::Turn& turn) {
                       std::optional<absl::StatusOr<Created>> joined = JoinExisting(*held);
                       if (joined.has_value()) return done(*std::move(joined));
                       // Hold the turn until the job is on the disk, where the next call with the
                       // request_id finds it.
                       CreateNew(*held, [turn, done](absl::StatusOr<Created> created) {
                         done(std::move(created));
                       });
                     });
}

std::optional<absl::StatusOr<JobService::Created>> JobService::JoinExisting(
    const Asked& asked) const {
  absl::StatusOr<std::optional<StoredJob>> existing =
      FindExisting(*asked.canonical, asked.digest, asked.caller.owner);
  if (!existing.ok()) return existing.status();
  if (!existing->has_value()) return std::nullopt;
  const bool tied = asked.caller.tied && (*existing)->tied_to_caller;
  absl::StatusOr<wan::v1::Job> job = NowOf(**std::move(existing));
  if (!job.ok()) return job.status();
  const bool holds = tied && !IsFinal(job->state());
  if (holds) parts_->callers.Join(job->name());
  return Created{*std::move(job), /*created=*/false, holds};
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

void JobService::CreateNew(const Asked& asked, CreateDone done) {
  // Do not read latents for a job that will be refused for want of room.
  if (NamesJobs(*asked.canonical)) {
    if (absl::Status room = CheckRoom(asked.caller.owner, 1); !room.ok()) return done(room);
  }
  absl::StatusOr<NewJob> prepared =
      Prepare(*asked.canonical, asked.digest, asked.caller, /*held=*/nullptr);
  if (!prepared.ok()) return done(prepared.status());
  const bool tied = asked.caller.tied;
  prepared->stored.tied_to_caller = tied;
  std::vector<NewJob> jobs;
  jobs.push_back(*std::move(prepared));
  CheckImagesOf(std::move(jobs), asked.caller, [this, tied, done](CheckedJobs checked) {
    if (!checked.refused.empty()) return done(checked.refused.begin()->second);
    if (!checked.dropped.ok()) return done(checked.dropped);
    Accept(std::move(checked.jobs),
           [this, tied, done](absl::StatusOr<std::vector<wan::v1::Job>> accepted) {
             if (!accepted.ok()) return done(accepted.status());
             wan::v1::Job& job = accepted->front();
             if (tied) parts_->callers.Join(job.name());
             done(Created{std::move(job), /*created=*/true, tied});
           });
  });
}

absl::Status JobService::CheckRoom(const std::string& owner, int jobs) const {
  absl::Status room = CheckStoredBytes(parts_->store, parts_->quotas.Of(owner), owner);
  return room.ok() ? parts_->states.CheckRoom(owner, jobs) : room;
}

absl::StatusOr<JobService::Planned> JobService::PlanInUse(const wan::v1::GenerationRequest& request,
                                                          const JobReader& caller,
                                                          const HeldLatents* held) const {
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

  std::optional<HeldLatents> found;
  if (held == nullptr) {
    absl::StatusOr<NamedLatents> named = latents_.Find(request, caller, violations);
    if (!named.ok()) return WithViolations(violations, named.status());
    const uint64_t bytes = named->bytes();
    if (bytes > 0 && !violations.empty()) return InvalidFields(violations);
    absl::StatusOr<RequestLatents::Lease> lease = latents_.Hold(caller.owner, bytes);
    if (!lease.ok()) return lease.status();
    found = HeldLatents{*std::move(named), *std::move(lease)};
    held = &*found;
  } else if (held->named.bytes() > 0 && !violations.empty()) {
    return InvalidFields(violations);
  }
  absl::StatusOr<JobInputs> inputs = latents_.Read(request, held->named, held->lease, violations);
  if (!inputs.ok()) return WithViolations(violations, inputs.status());
  // Do not plan the request without its latents, because the plan would be that of another request.
  if ((request.has_initial_latents() && inputs->initial_latents == nullptr) ||
      (request.has_latents() && inputs->latents == nullptr)) {
    return InvalidFields(violations);
  }
  // Plan for each of these groups: any of them may run the job, so the job must fit all. The plans
  // differ only if the groups' cards differ.
  std::optional<GenerationPlan> plan;
  for (const int group : parts_->models.ReadyIn(model)) {
    absl::StatusOr<GenerationPlan> planned = CallEngine(
        [&] { return parts_->groups.engine(group).Plan(ToEngineRequest(request, *inputs)); });
    if (!planned.ok()) return WithViolations(violations, planned.status());
    if (!plan.has_value()) plan = *std::move(planned);
  }
  if (!plan.has_value())
    // The last serving group was lost after AddJob.
    return WithViolations(violations, DeviceGoneError());
  if (!violations.empty()) return InvalidFields(violations);
  std::move(unuse).Cancel();
  return Planned{*std::move(plan), *std::move(inputs)};
}

absl::StatusOr<NewJob> JobService::Prepare(const wan::v1::GenerationRequest& request,
                                           const std::string& digest, const CallerFacts& caller,
                                           const HeldLatents* held) {
  if (absl::Status storage = parts_->storage.status(); !storage.ok()) {
    return StorageUnavailableError(storage);
  }
  absl::StatusOr<Planned> planned = PlanInUse(request, {caller.owner, caller.reads_all}, held);
  if (!planned.ok()) return planned.status();
  NewJob job;
  job.inputs = std::move(planned->inputs);
  job.work = std::make_shared<const PlannedWork>(planned->plan.stages);
  job.stored.request_digest = digest;
  job.stored.job.set_name(NewJobName());
  job.stored.job.set_owner(caller.owner);
  if (!caller.trace.trace_id().empty()) {
    *job.stored.job.mutable_trace() = caller.trace;
  } else if (parts_->new_trace != nullptr) {
    *job.stored.job.mutable_trace() = parts_->new_trace();
  }
  if (const JobInputs::File& image = job.inputs.image; image != nullptr) {
    job.stored.job.set_image_sha256(Sha256Hex(*image));
  }
  wan::v1::GenerationRequest& resolved = *job.stored.job.mutable_request();
  resolved = ToProto(planned->plan.request);
  DescribeLatents(request, job.inputs, resolved);
  resolved.set_priority(request.priority());
  resolved.set_resume(request.resume());
  if (request.has_deadline()) *resolved.mutable_deadline() = request.deadline();
  resolved.set_request_id(request.request_id());
  resolved.set_webhook_url(request.webhook_url());
  *resolved.mutable_labels() = request.labels();
  return job;
}

void JobService::CheckImagesOf(std::vector<NewJob> jobs, const CallerFacts& caller,
                               std::function<void(CheckedJobs)> done) {
  PostStep step = caller.decode;
  if (step == nullptr) step = [](const auto& task) { task(absl::OkStatus()); };
  // Decoding needs no device, so use the first engine.
  CheckImages(parts_->groups.engine(0), std::move(jobs), step,
              [this, done = std::move(done)](CheckedJobs checked) {
                if (!checked.dropped.ok() || !checked.refused.empty()) {
                  for (const NewJob& job : checked.jobs) {
                    parts_->models.RemoveJob(job.stored.job.request().model());
                  }
                }
                done(std::move(checked));
              });
}

void JobService::Accept(std::vector<NewJob> jobs, JobStates::Accepted done) {
  // The links come first: what the database says is there must be there. The database stores what
  // is not linked.
  LinkInputs(parts_->links_inputs ? &parts_->input_links : nullptr, jobs);
  // Each pair has a job's name and its model's name.
  std::vector<std::pair<std::string, std::string>> names;
  const std::string& owner = jobs.front().stored.job.owner();
  absl::Status room = CheckStoredBytes(parts_->store, parts_->quotas.Of(owner), owner);
  for (const NewJob& job : jobs) {
    names.emplace_back(job.stored.job.name(), job.stored.job.request().model());
    if (room.ok()) room = parts_->disk.Take(job.stored.job);
  }
  const auto settle = [this, names = std::move(names),
                       done = std::move(done)](absl::StatusOr<std::vector<wan::v1::Job>> accepted) {
    if (accepted.ok()) {
      parts_->groups.WakeAll();
      return done(std::move(accepted));
    }
    for (const auto& [job, model] : names) {
      parts_->disk.Release(job);
      parts_->input_links.Remove(job);
      parts_->models.RemoveJob(model);
    }
    parts_->ReportIfStorage(accepted.status());
    const bool storage = ReasonOf(accepted.status()) == kReasonStorageUnavailable;
    done(storage ? StorageUnavailableError(accepted.status()) : accepted.status());
  };
  if (!room.ok()) return settle(room);
  {
    absl::MutexLock lock(&parts_->accepting_mutex);
    ++parts_->accepting;
  }
  parts_->states.Accept(std::move(jobs),
                        [this, settle](absl::StatusOr<std::vector<wan::v1::Job>> accepted) {
                          settle(std::move(accepted));
                          absl::MutexLock lock(&parts_->accepting_mutex);
                          --parts_->accepting;
                        });
}

absl::StatusOr<wan::v1::QuoteResponse> JobService::Quote(const wan::v1::QuoteRequest& quote,
                                                         const JobReader& caller) const {
  const std::vector<FieldViolation> too_large = ValidateSizes(quote.request());
  if (!too_large.empty()) return InvalidFields(too_large);
  const CanonicalRequest canonical(quote.request());
  const wan::v1::GenerationRequest& request = *canonical;
  const absl::StatusOr<Planned> planned = PlanInUse(request, caller, /*held=*/nullptr);
  if (!planned.ok()) return planned.status();
  const std::string& model = request.model();
  const absl::Cleanup unuse = [&] { parts_->models.RemoveJob(model); };
  const GenerationPlan& plan = planned->plan;

  wan::v1::QuoteResponse response;
  *response.mutable_request() = ToProto(plan.request);
  DescribeLatents(request, planned->inputs, *response.mutable_request());
  response.set_steps(static_cast<int>(plan.steps.size()));
  double flops = 0;
  for (const StagePlan& stage : plan.stages) flops += stage.flops.value_or(0);
  response.set_flops(flops);
  response.set_eight_bits(plan.eight_bits);
  response.mutable_exact_blocks()->Add(plan.exact_blocks.begin(), plan.exact_blocks.end());
  for (const int step : ReusedSteps(plan)) response.add_reused_steps(step);
  if (plan.peak_device_bytes > 0) response.set_device_memory_bytes(plan.peak_device_bytes);
  if (plan.peak_host_bytes > 0) response.set_host_memory_bytes(plan.peak_host_bytes);

  const TimeEstimator::Spread spread = parts_->estimator.ExpectedSpread(model);
  const auto estimate = [&](double seconds) {
    wan::v1::TimeEstimate result;
    result.set_p50_seconds(seconds * spread.p50);
    result.set_p90_seconds(seconds * spread.p90);
    return result;
  };
  const JobOutlook::ForNew outlook = parts_->outlook.OfNew(caller.owner, request.priority());
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
