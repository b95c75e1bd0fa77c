#include "server/jobs/job_service.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/conversion/page_token.h"
#include "server/conversion/validation.h"
#include "server/jobs/deadline_timer.h"
#include "server/jobs/engine_call.h"
#include "server/jobs/executor.h"
#include "server/jobs/job_runner.h"
#include "server/jobs/job_table.h"
#include "server/jobs/storage_watch.h"
#include "server/jobs/time_estimator.h"
#include "server/store/canary_record.h"
#include "server/store/digest.h"
#include "server/store/reopening_job_store.h"
#include "server/store/sqlite_job_store.h"

namespace wan::server {
namespace {

constexpr char kDatabaseFile[] = "jobs.db";
constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;
// There are fewer states; callers may name some of them twice.
constexpr int kMaxListedStates = 16;
constexpr char kDeadlineExceeded[] = "deadline exceeded";
constexpr char kCallerWentAway[] = "caller went away";

// Hashes the bytes that are serialised into it, so that a request with a large image is not copied.
class HashingStream final : public google::protobuf::io::CopyingOutputStream {
 public:
  bool Write(const void* data, int size) override {
    hash_.Update({static_cast<const char*>(data), static_cast<size_t>(size)});
    return true;
  }
  std::string FinishHex() { return hash_.FinishHex(); }

 private:
  Sha256 hash_;
};

// Equal requests have equal digests, because deterministic serialisation sorts map entries.
std::string DigestOf(const wan::v1::GenerationRequest& request) {
  HashingStream hash;
  {
    google::protobuf::io::CopyingOutputStreamAdaptor stream(&hash);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    request.SerializeToCodedStream(&coded);
  }
  return hash.FinishHex();
}

// Lets one thread at a time create a job with a given request_id, so that a retry finds the job of
// the first call instead of competing with it.
class KeyLock {
 public:
  void Lock(const std::string& key) {
    absl::MutexLock lock(&mutex_);
    const auto free = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !held_.contains(key); };
    mutex_.Await(absl::Condition(&free));
    held_.insert(key);
  }
  void Unlock(const std::string& key) {
    absl::MutexLock lock(&mutex_);
    held_.erase(key);
  }

 private:
  absl::Mutex mutex_;
  std::set<std::string> held_ ABSL_GUARDED_BY(mutex_);
};

// Who holds the jobs that are tied to their callers: a job may have several, who asked for it with
// one request_id, because a caller comes back before the server has noticed that it was away.
class Callers {
 public:
  // `lost` hears of each job whose last caller let it go and did not come back within `grace`, on a
  // thread of this object's and with no lock held.
  Callers(Clock& clock, absl::Duration grace, std::function<void(const std::string& job)> lost)
      : clock_(clock), grace_(grace), timer_(clock) {
    timer_.Start([this, lost = std::move(lost)](const std::string& job) {
      if (Forget(job)) lost(job);
    });
  }

  absl::Duration grace() const { return grace_; }

  void Join(const std::string& job) {
    timer_.Remove(job);
    absl::MutexLock lock(&mutex_);
    ++callers_[job];
  }

  // Returns whether that was the last.
  bool Leave(const std::string& job) {
    absl::MutexLock lock(&mutex_);
    const auto found = callers_.find(job);
    return found != callers_.end() && --found->second == 0;
  }

  // Begins the grace time of a job that its last caller has left.
  void Await(const std::string& job) { timer_.Add(job, clock_.Now() + grace_); }

  // Returns whether the job had no caller.
  bool Forget(const std::string& job) {
    absl::MutexLock lock(&mutex_);
    const auto found = callers_.find(job);
    if (found == callers_.end() || found->second > 0) return false;
    callers_.erase(found);
    return true;
  }

  // No job is told of any more.
  void Stop() { timer_.Stop(); }

 private:
  Clock& clock_;
  const absl::Duration grace_;
  absl::Mutex mutex_;
  std::map<std::string, int> callers_ ABSL_GUARDED_BY(mutex_);
  DeadlineTimer timer_;  // last: its thread uses the others
};

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

// What a page token of jobs belongs to: the order in which states are named does not matter.
std::string ListedStates(const std::vector<wan::v1::JobState>& states) {
  const std::set<int> sorted(states.begin(), states.end());
  return absl::StrCat("ListJobs states ", absl::StrJoin(sorted, ","));
}

// Joins the violations found so far with those of `status`; returns `status` if there are none.
absl::Status WithViolations(const std::vector<FieldViolation>& violations,
                            const absl::Status& status) {
  const std::vector<FieldViolation> all = Merge(violations, FieldViolationsOf(status));
  return all.empty() ? status : InvalidFields(all);
}

}  // namespace

struct JobService::Parts {
  Parts(const JobServiceOptions& options, Engine& engine_in, Clock& clock_in)
      : listeners(options.listeners),
        engine(engine_in),
        clock(clock_in),
        store([this, file = options.data_dir / kDatabaseFile] { return OpenStore(file); },
              [this, file = options.data_dir / kDatabaseFile] {
                return OpenSqliteJobStoreForReading(
                    file, [this](const absl::Status& problem) { Tell(problem); });
              }),
        artifacts(options.data_dir),
        savepoints(options.data_dir),
        storage(clock),
        log(std::make_unique<EventLog>(store, clock,
                                       [this](const absl::Status& problem) {
                                         ReportIfStorage(problem);
                                         Tell(problem);
                                       })),
        timer(clock),
        models(engine, executor, clock,
               {options.warm_up_on_load, options.warm_up_shapes, options.sinks, options.listeners,
                [this](const absl::Status& problem) { LoseDevice(DeviceLoss::kError, problem); },
                options.model_roots}),
        table({store, *log, models, timer, estimator, clock, engine.Device().device,
               engine.Device().dtype, options.queue_capacity, options.max_attempts,
               options.listeners}),
        runner({engine, store, table, *log, artifacts, savepoints, estimator, clock, storage,
                options.sinks,
                [this](const absl::Status& problem) { LoseDevice(DeviceLoss::kError, problem); },
                options.listeners, options.savepoint_interval, options.server_version}),
        callers(clock, options.caller_grace, [this](const std::string& job) {
          EndJob(job, StopCause::kCancelled, kCallerWentAway);
        }) {}

  // The log must die before the table: its last writes call back into it.
  ~Parts() {
    storage.Stop();
    callers.Stop();
    log.reset();
  }

  // Called on the executor's thread. What runs now is the executor's last work.
  void LoseDevice(DeviceLoss cause, const absl::Status& problem) {
    table.LoseDevice();
    for (StateListener* listener : listeners) listener->OnDeviceLost(cause, problem);
    executor.Halt();
  }

  // The executor's first task, so that no model is loaded on a device that computes wrongly.
  void CheckDevice(const std::filesystem::path& data_dir) {
    const auto canary = CallEngine([&] { return engine.RunCanary(); });
    absl::Status status = canary.status();
    if (canary.ok() && canary->has_value()) status = CompareCanary(data_dir, **canary);
    if (status.ok()) return;
    if (IsDeviceLost(status)) return LoseDevice(DeviceLoss::kCanary, status);
    for (StateListener* listener : listeners) listener->OnProblem(status);
  }

  // From outside. The savepoint of a job that runs goes when it has stopped.
  void EndJob(const std::string& job, StopCause cause, std::string_view reason) {
    table.Cancel(job, cause, reason);
    const std::optional<wan::v1::Job> after = table.Find(job);
    if (!after.has_value() || IsFinal(after->state())) savepoints.Remove(job);
  }

  absl::StatusOr<std::unique_ptr<JobStore>> OpenStore(const std::filesystem::path& file) {
    std::error_code ignored;  // if this fails, opening the file fails and says why
    std::filesystem::create_directories(file.parent_path(), ignored);
    return OpenSqliteJobStore(file, [this](const absl::Status& problem) { Tell(problem); });
  }

  // Takes over what an earlier process left. The store must be open.
  absl::Status Recover();
  // Returns OK if a job could write its row, events and artifacts now.
  absl::Status ProbeStorage();

  void Tell(const absl::Status& problem) {
    for (StateListener* listener : listeners) listener->OnProblem(problem);
  }
  void ReportIfStorage(const absl::Status& problem) {
    if (ReasonOf(problem) == kReasonStorageUnavailable) storage.Report(problem);
  }

  const std::vector<StateListener*> listeners;
  Engine& engine;
  Clock& clock;
  ReopeningJobStore store;
  const ArtifactStore artifacts;
  const SavepointStore savepoints;
  StorageWatch storage;
  std::unique_ptr<EventLog> log;
  TimeEstimator estimator;
  DeadlineTimer timer;
  Executor executor;
  ModelRegistry models;
  JobTable table;
  JobRunner runner;
  KeyLock request_ids;
  Callers callers;
  bool recovered = false;  // used by Open's thread, then by the storage watch's alone
  absl::Mutex stop_mutex;
  bool stopped ABSL_GUARDED_BY(stop_mutex) = false;
};

absl::Status JobService::Parts::Recover() {
  // Keep the videos of unknown jobs: the database may have been replaced by a new one.
  absl::Status removed = artifacts.RemoveLeftovers([&](const std::string& job) {
    const absl::StatusOr<StoredJob> stored = store.Get(job);
    return !stored.ok() || stored->job.state() == wan::v1::JOB_STATE_COMPLETED;
  });
  removed.Update(savepoints.RemoveLeftovers([&](const std::string& job) {
    const absl::StatusOr<StoredJob> stored = store.Get(job);
    return stored.ok() && !IsFinal(stored->job.state());
  }));
  if (!removed.ok()) Tell(removed);  // leftovers only cost disk space
  absl::Status status = table.Recover();
  recovered = status.ok() || ReasonOf(status) == kReasonStorageUnavailable;
  return status;
}

absl::Status JobService::Parts::ProbeStorage() {
  if (absl::Status opened = store.Reopen(); !opened.ok()) return opened;
  if (!recovered) {
    if (absl::Status status = Recover(); !status.ok()) return status;
  }
  if (absl::Status status = store.CheckWritable(); !status.ok()) return status;
  return artifacts.CheckWritable(runner.least_free_bytes());
}

absl::StatusOr<std::unique_ptr<JobService>> JobService::Open(const JobServiceOptions& options,
                                                             Engine& engine, Clock& clock) {
  auto owned = std::make_unique<Parts>(options, engine, clock);
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
  parts.executor.Post({[&parts, folder = options.data_dir] { parts.CheckDevice(folder); }, [] {}});
  parts.executor.Start([&parts] { return parts.runner.RunNext(); });
  parts.storage.Start({[&parts] { return parts.ProbeStorage(); },
                       [&parts](const absl::Status& status) {
                         for (StateListener* listener : parts.listeners) {
                           listener->OnStorage(status);
                         }
                         if (status.ok()) parts.executor.Wake();
                       }});
  return std::unique_ptr<JobService>(new JobService(std::move(owned)));
}

JobService::JobService(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

JobService::~JobService() { Stop(StopMode::kRequeue, absl::ZeroDuration()); }

ModelRegistry& JobService::models() { return parts_->models; }

JobStats JobService::Stats() const {
  JobStats stats = parts_->table.Stats();
  stats.storage_writable = parts_->storage.status().ok();
  return stats;
}

absl::StatusOr<JobService::Created> JobService::Create(const wan::v1::GenerationRequest& request,
                                                       bool tied_to_caller,
                                                       const std::string& owner) {
  const std::vector<FieldViolation> too_large = ValidateSizes(request);
  if (!too_large.empty()) return InvalidFields(too_large);
  const std::string digest = DigestOf(request);
  const std::string& request_id = request.request_id();
  if (request_id.empty() || !ValidateRequestId(request).empty()) {
    return CreateNew(request, digest, tied_to_caller, owner);
  }
  const std::string key = absl::StrCat(owner, "\n", request_id);
  parts_->request_ids.Lock(key);
  const absl::Cleanup unlock = [&] { parts_->request_ids.Unlock(key); };
  const absl::StatusOr<StoredJob> existing = parts_->store.FindByRequestId(owner, request_id);
  if (absl::IsNotFound(existing.status())) {
    return CreateNew(request, digest, tied_to_caller, owner);
  }
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
  const absl::StatusOr<wan::v1::Job> job = Get(existing->job.name());
  if (!job.ok()) return job.status();
  const bool holds = tied_to_caller && existing->tied_to_caller && !IsFinal(job->state());
  if (holds) parts_->callers.Join(job->name());
  return Created{*job, /*created=*/false, holds};
}

absl::StatusOr<JobService::Created> JobService::CreateNew(const wan::v1::GenerationRequest& request,
                                                          const std::string& digest,
                                                          bool tied_to_caller,
                                                          const std::string& owner) {
  if (absl::Status storage = parts_->storage.status(); !storage.ok()) {
    return StorageUnavailableError(storage);
  }
  const std::vector<FieldViolation> violations = ValidateRequest(request, parts_->clock.Now());
  const std::string& model = request.model();
  if (model.empty()) return InvalidFields(violations);
  absl::Status usable = parts_->models.AddJob(model);
  if (!usable.ok()) return WithViolations(violations, usable);
  absl::Cleanup unuse = [&] { parts_->models.RemoveJob(model); };

  std::shared_ptr<const std::string> image;
  if (!request.image().empty()) image = std::make_shared<const std::string>(request.image());
  const absl::StatusOr<GenerationPlan> plan =
      CallEngine([&] { return parts_->engine.Plan(ToEngineRequest(request, image)); });
  if (!plan.ok()) return WithViolations(violations, plan.status());
  if (!violations.empty()) return InvalidFields(violations);

  StoredJob stored;
  stored.tied_to_caller = tied_to_caller;
  stored.request_digest = digest;
  stored.job.set_name(NewJobName());
  stored.job.set_owner(owner);
  if (image != nullptr) stored.job.set_image_sha256(Sha256Hex(*image));
  wan::v1::GenerationRequest& resolved = *stored.job.mutable_request();
  resolved = ToProto(plan->request);
  resolved.set_priority(request.priority());
  if (request.has_deadline()) *resolved.mutable_deadline() = request.deadline();
  resolved.set_request_id(request.request_id());
  *resolved.mutable_labels() = request.labels();

  absl::StatusOr<wan::v1::Job> job = parts_->table.Accept(
      std::move(stored), request.image(), std::make_shared<const PlannedWork>(plan->stages));
  parts_->ReportIfStorage(job.status());
  if (ReasonOf(job.status()) == kReasonStorageUnavailable) {
    return StorageUnavailableError(job.status());
  }
  if (!job.ok()) return job.status();
  std::move(unuse).Cancel();  // the job keeps the model until it ends
  parts_->executor.Wake();
  if (tied_to_caller) parts_->callers.Join(job->name());
  return Created{*std::move(job), /*created=*/true, tied_to_caller};
}

absl::StatusOr<wan::v1::Job> JobService::Get(std::string_view name) const {
  absl::Status valid = CheckJobName(name, "name");
  if (!valid.ok()) return valid;
  std::optional<wan::v1::Job> live = parts_->table.Find(std::string(name));
  if (live.has_value()) return *std::move(live);
  absl::StatusOr<StoredJob> stored = parts_->store.Get(name);
  if (!stored.ok()) return stored.status();
  return std::move(stored->job);
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
  std::vector<FieldViolation> violations;
  JobQuery query;
  query.owner = owner;
  query.limit = request.page_size() == 0 ? kDefaultPageSize : request.page_size();
  if (query.limit < 0 || query.limit > kMaxPageSize) {
    violations.push_back(
        {"page_size", absl::StrCat("must be from 1 to ", kMaxPageSize, ", or 0 for ",
                                   kDefaultPageSize, "; got ", query.limit)});
  }
  if (request.states_size() > kMaxListedStates) {
    violations.push_back(
        {"states", absl::StrCat("has ", request.states_size(), " entries; must have at most ",
                                kMaxListedStates)});
    return InvalidFields(violations);
  }
  for (int i = 0; i < request.states_size(); ++i) {
    const int state = request.states(i);
    if (state == wan::v1::JOB_STATE_UNSPECIFIED || !wan::v1::JobState_IsValid(state)) {
      violations.push_back({absl::StrCat("states[", i, "]"),
                            absl::StrCat("must be a state of wan.v1.JobState, got ", state)});
    } else if (std::find(query.states.begin(), query.states.end(), state) == query.states.end()) {
      query.states.push_back(request.states(i));
    }
  }
  if (!request.page_token().empty() && violations.empty()) {
    const absl::StatusOr<std::string> place =
        ParsePageToken(request.page_token(), ListedStates(query.states));
    if (!place.ok()) return place.status();
    if (!absl::SimpleAtoi(*place, &query.before)) query.before = 0;
  }
  if (!violations.empty()) return InvalidFields(violations);

  // The store compares the states, the live jobs below are what the caller sees: flush, so that
  // both agree. If the store refuses to write, the list shows what it has.
  parts_->log->Flush().IgnoreError();
  const absl::StatusOr<JobPage> page = parts_->store.List(query);
  if (!page.ok()) return page.status();
  wan::v1::ListJobsResponse response;
  for (const StoredJob& stored : page->jobs) {
    std::optional<wan::v1::Job> live = parts_->table.Find(stored.job.name());
    *response.add_jobs() = live.has_value() ? *std::move(live) : stored.job;
  }
  if (page->next != 0) {
    response.set_next_page_token(
        MakePageToken(absl::StrCat(page->next), ListedStates(query.states)));
  }
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
  parts_->callers.Forget(name);
  parts_->table.Cancel(name, StopCause::kCancelled,
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

absl::StatusOr<JobService::OpenedArtifact> JobService::OpenArtifact(std::string_view name,
                                                                    uint64_t offset) const {
  const absl::StatusOr<ArtifactRef> ref = ParseArtifactName(name, "name");
  if (!ref.ok()) return ref.status();
  const absl::StatusOr<wan::v1::Job> job = Get(ref->job);
  if (!job.ok()) return job.status();
  for (const wan::v1::Artifact& artifact : job->artifacts()) {
    if (artifact.name() != name) continue;
    absl::StatusOr<ArtifactReader> reader = parts_->artifacts.OpenForReading(name, offset);
    if (!reader.ok()) return reader.status();
    return OpenedArtifact{artifact, *std::move(reader)};
  }
  return WithReason(
      absl::NotFoundError(absl::StrCat(job->name(), " (", wan::v1::JobState_Name(job->state()),
                                       ") has no artifact '", ref->file, "'")),
      kReasonArtifactNotFound);
}

void JobService::Stop(StopMode mode, absl::Duration grace) {
  absl::MutexLock lock(&parts_->stop_mutex);
  if (parts_->stopped) return;
  parts_->stopped = true;
  parts_->storage.Stop();
  parts_->table.Drain();
  // No model task is worth waiting for: the next start loads the models again.
  parts_->models.Stop();
  parts_->log->Flush().IgnoreError();  // from here on a kill does not count against the job
  if (mode == StopMode::kFinish) parts_->table.AwaitIdle(parts_->clock.Now() + grace);
  parts_->table.RequeueRunning();
  parts_->executor.Stop();
  parts_->timer.Stop();
  parts_->callers.Stop();
  parts_->log->Flush().IgnoreError();  // the listeners have been told of the problem
  parts_->log->Close();
}

}  // namespace wan::server
