#include "server/jobs/job_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/conversion/job_update.h"
#include "server/conversion/names.h"
#include "server/jobs/job_service_parts.h"
#include "server/jobs/list_query.h"
#include "server/jobs/receipts.h"
#include "server/quota/stored_bytes.h"

namespace wan::server {
namespace {

constexpr char kDeadlineExceeded[] = "deadline exceeded";
constexpr absl::Duration kReadRetryDelay = absl::Seconds(5);

// Returns the error of a read of the store as callers may see it. The store's own message, which
// may name hosts and files, is in the storage status and in the log.
absl::Status ReadError(const absl::Status& status) {
  if (ReasonOf(status) != kReasonStorageUnavailable) return status;
  return WithRetryDelay(
      WithReason(absl::UnavailableError("the server's storage cannot be read now; try again later"),
                 kReasonStorageUnavailable),
      kReadRetryDelay);
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobService>> JobService::Open(const JobServiceOptions& options,
                                                             const std::vector<Engine*>& engines,
                                                             Clock& clock) {
  auto owned = std::make_unique<Parts>(options, engines, clock);
  Parts& parts = *owned;
  {
    absl::MutexLock lock(&parts.probe_mutex);
    const absl::Status opened = parts.store.Reopen();
    if (!opened.ok() && ReasonOf(opened) != kReasonStorageUnavailable) return opened;
    if (parts.store.opened()) {
      const absl::Status status = parts.Recover();
      if (!parts.recovered) return status;
    }
  }
  parts.storage.Report(parts.ProbeStorage());
  parts.timer.Start([&parts](const std::string& job) {
    parts.states.Cancel(job, StopCause::kDeadline, kDeadlineExceeded);
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
                       },
                       [&parts] { return parts.disk.CheckRoom(); },
                       [&parts](const absl::Status& status) {
                         for (StateListener* listener : parts.listeners) {
                           listener->OnDiskRoom(status);
                         }
                       }});
  // Keep room for deletions before anybody can fill the disk; a round of the retention may be late.
  parts.ended_jobs.KeepRoom();
  parts.retention.Start();
  return std::unique_ptr<JobService>(new JobService(std::move(owned)));
}

JobService::JobService(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)),
      latents_({.owner_of = [this](std::string_view job) { return OwnerOf(job, "job"); },
                .find = [this](std::string_view job) { return Get(job); },
                .open = [this](std::string_view artifact) -> absl::StatusOr<ArtifactReader> {
                  absl::StatusOr<OpenedArtifact> opened = OpenArtifact(artifact, 0);
                  if (!opened.ok()) return opened.status();
                  return std::move(opened->reader);
                }}) {}

JobService::~JobService() { Stop(StopMode::kRequeue, absl::ZeroDuration()); }

ModelTable& JobService::models() { return parts_->models; }

ModelOperations& JobService::model_operations() { return parts_->model_operations; }

WebhookOutbox& JobService::webhooks() { return parts_->store.webhooks(); }

absl::Status JobService::CheckProgress() const { return parts_->progress.Check(); }

JobStats JobService::Stats() const {
  JobStats stats = parts_->outlook.Stats();
  stats.storage_writable = parts_->storage.status().ok();
  stats.draining = parts_->drainer.draining();
  stats.job_watchers = parts_->log->watchers();
  stats.disk_free_bytes = parts_->disk.free_bytes();
  stats.disk_reserved_bytes = parts_->disk.reserved_bytes();
  return stats;
}

StorageStats JobService::StorageNow() const { return parts_->StorageNow(); }

absl::StatusOr<wan::v1::Usage> JobService::UsageOf(const std::string& principal) const {
  wan::v1::Usage usage = parts_->order.UsageOf(principal);
  *usage.mutable_quota() = parts_->quotas.Of(principal);
  const absl::StatusOr<uint64_t> stored = StoredBytesOf(parts_->store, principal);
  if (!stored.ok()) return ReadError(stored.status());
  usage.set_stored_bytes(*stored);
  return usage;
}

void JobService::SetLimits(const RetentionPolicy& retention, uint64_t disk_reserve_bytes) {
  parts_->disk.SetReserve(disk_reserve_bytes);
  parts_->retention.SetPolicy(retention);
}

void JobService::QuotasChanged() { parts_->groups.WakeAll(); }

void JobService::Update(const wan::v1::UpdateJobRequest& request, const PostTask& post,
                        JobDone done) {
  absl::StatusOr<JobUpdate> parsed = ParseJobUpdate(request, parts_->clock.Now());
  if (!parsed.ok()) return done(parsed.status());
  const auto update = std::make_shared<const JobUpdate>(*std::move(parsed));
  std::optional<wan::v1::Job> live = parts_->states.Update(
      update->job, [&](wan::v1::GenerationRequest& values) { update->ApplyTo(values); });
  // The job may have ended although its end is not on the disk yet.
  parts_->log->Flush(update->job, [this, update, post, live = std::move(live),
                                   done = std::move(done)](const absl::Status& stored) {
    if (!stored.ok()) return done(ChangeNotStoredError(stored));
    if (live.has_value()) return done(*live);
    UpdateEnded(update, post, done);
  });
}

void JobService::UpdateEnded(const std::shared_ptr<const JobUpdate>& update, const PostTask& post,
                             JobDone done) {
  const auto change = [update](wan::v1::Job& job) -> absl::Status {
    if (update->NeedsUnended()) {
      return WithReason(absl::FailedPreconditionError(absl::StrCat(
                            job.name(), " has ended (", wan::v1::JobState_Name(job.state()),
                            "); only its labels can still change")),
                        kReasonJobEnded);
    }
    update->ApplyTo(*job.mutable_request());
    return absl::OkStatus();
  };
  parts_->ended_jobs.Change(update->job, /*labels=*/true, change, post,
                            [this, done = std::move(done)](absl::StatusOr<wan::v1::Job> ended) {
                              if (ended.ok()) parts_->retention.policy().SetExpireTime(*ended);
                              done(std::move(ended));
                            });
}

void JobService::Delete(std::string_view name, const PostTask& post, Done done) {
  if (absl::Status valid = CheckJobName(name, "name"); !valid.ok()) return done(valid);
  parts_->ended_jobs.Delete(std::string(name), post, std::move(done));
}

void JobService::DeleteArtifact(std::string_view name, const PostTask& post, Done done) {
  const absl::StatusOr<ArtifactRef> ref = ParseArtifactName(name, "name");
  if (!ref.ok()) return done(ref.status());
  parts_->ended_jobs.DeleteArtifact(*ref, post, std::move(done));
}

absl::StatusOr<wan::v1::Job> JobService::Get(std::string_view name) const {
  absl::Status valid = CheckJobName(name, "name");
  if (!valid.ok()) return valid;
  JobStates::View live = parts_->states.Look(std::string(name));
  if (live.hidden) return JobNotFoundError(name);
  if (!live.job.has_value()) {
    absl::StatusOr<StoredJob> stored = parts_->store.Get(name);
    if (!stored.ok()) return ReadError(stored.status());
    live.job = std::move(stored->job);
  }
  parts_->retention.policy().SetExpireTime(*live.job);
  return *std::move(live.job);
}

absl::StatusOr<wan::v1::Job> JobService::NowOf(StoredJob stored) const {
  JobStates::View live = parts_->states.Look(stored.job.name());
  if (live.hidden) return JobNotFoundError(stored.job.name());
  if (!live.job.has_value()) {
    // The job has ended since `stored` was read, so read the job's row again.
    if (!IsFinal(stored.job.state())) return Get(stored.job.name());
    live.job = std::move(stored.job);
  }
  parts_->retention.policy().SetExpireTime(*live.job);
  return *std::move(live.job);
}

absl::StatusOr<std::string> JobService::OwnerOf(std::string_view name,
                                                std::string_view field) const {
  absl::Status valid = CheckJobName(name, field);
  if (!valid.ok()) return valid;
  const JobStates::View live = parts_->states.Look(std::string(name));
  if (live.hidden) return JobNotFoundError(name);
  if (live.job.has_value()) return live.job->owner();
  absl::StatusOr<std::string> owner = parts_->store.OwnerOf(name);
  if (!owner.ok()) return ReadError(owner.status());
  return owner;
}

absl::StatusOr<std::unique_ptr<JobListing>> JobService::BeginList(
    const wan::v1::ListJobsRequest& request, const std::optional<std::string>& owner) const {
  absl::StatusOr<std::string> key = parts_->store.SecretKey();
  if (!key.ok()) return ReadError(key.status());
  absl::StatusOr<JobQuery> query = QueryOf(request, owner, *key);
  if (!query.ok()) return query.status();
  return std::make_unique<JobListing>(
      JobListing::Parts{parts_->store, parts_->states, parts_->retention}, request,
      *std::move(query), *std::move(key));
}

void JobService::Cancel(std::string_view name, std::string_view reason, JobDone done) {
  if (absl::Status valid = CheckJobName(name, "name"); !valid.ok()) return done(valid);
  const std::string job(name);
  parts_->states.Cancel(job, StopCause::kCancelled, reason);
  parts_->log->Flush(job, [this, job, done = std::move(done)](const absl::Status& stored) {
    stored.ok() ? done(Get(job)) : done(ChangeNotStoredError(stored));
  });
}

void JobService::CallerWentAway(const std::string& name, bool deadline_passed) {
  if (!parts_->callers.Leave(name)) return;
  const std::optional<wan::v1::Job> job = parts_->states.Look(name).job;
  if (job.has_value() && !deadline_passed && !job->request().request_id().empty() &&
      parts_->callers.grace() > absl::ZeroDuration()) {
    parts_->callers.Await(name);
    return;
  }
  // Forget fails if another caller has joined the job since the call of Leave.
  if (!parts_->callers.Forget(name)) return;
  parts_->states.Cancel(name, StopCause::kCallerGone,
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
  std::optional<wan::v1::JobReport> live = parts_->states.FindReport(std::string(name));
  if (live.has_value()) return *std::move(live);
  absl::StatusOr<wan::v1::JobReport> stored = parts_->store.Report(name);
  if (stored.ok()) return stored;
  if (!absl::IsNotFound(stored.status())) return ReadError(stored.status());
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
  const absl::StatusOr<wan::v1::Job> job = Get(name);
  if (!job.ok()) return job.status();
  absl::StatusOr<std::vector<JobFile>> files = parts_->store.Files(name);
  if (!files.ok()) return ReadError(files.status());
  return MakeReceipt(*job, *std::move(files), parts_->digests);
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

absl::StatusOr<std::unique_ptr<LiveVideoReader>> JobService::WatchVideo(std::string_view name) {
  const absl::StatusOr<wan::v1::Job> job = Get(name);
  if (!job.ok()) return job.status();
  if (!job->request().progressive() && !IsFinal(job->state())) {
    return WithReason(absl::FailedPreconditionError(absl::StrCat(
                          job->name(),
                          " cannot be watched while it is made, because its request does not have "
                          "progressive; its file is there once it has completed")),
                      kReasonNotProgressive);
  }
  std::unique_ptr<LiveVideoReader> reader = parts_->live_videos.Watch(job->name());
  // If the job ended before the call of Watch, nobody else tells the reader, so do it here.
  const absl::StatusOr<wan::v1::Job> now = Get(name);
  if (!now.ok() || IsFinal(now->state())) parts_->live_videos.Forget(job->name());
  return reader;
}

void JobService::Drain(StopMode mode, absl::Duration timeout,
                       std::function<void(const absl::StatusOr<wan::v1::DrainResponse>&)> done) {
  parts_->drainer.Begin(mode, timeout, std::move(done));
}

void JobService::Undrain(
    std::function<void(const absl::StatusOr<wan::v1::UndrainResponse>&)> done) {
  parts_->drainer.Undrain([this, done = std::move(done)](const absl::Status& undone) {
    if (!undone.ok()) return done(undone);
    wan::v1::UndrainResponse response;
    response.set_queued_jobs(parts_->outlook.Stats().queued_total);
    parts_->groups.WakeAll();
    done(response);
  });
}

void JobService::AwaitWrites() {
  parts_->log->Flush().IgnoreError();  // ignore errors: the log itself reports them
}

void JobService::Stop(StopMode mode, absl::Duration grace) {
  absl::MutexLock lock(&parts_->stop_mutex);
  if (parts_->stopped) return;
  parts_->stopped = true;
  // Stop the drainer first, so that the waits below include the changes that it makes.
  parts_->drainer.Stop(mode, grace);
  parts_->queue_estimates
      .Keep();  // the last job has ended; the rates are written while the following calls wait
  parts_->storage.Stop();
  parts_->digests.Stop();
  parts_->retention.Stop();
  {
    absl::MutexLock probe(&parts_->probe_mutex);
    parts_->sweep = {};
  }
  parts_->AwaitAccepted();
  parts_->groups.Stop();
  parts_->timer.Stop();
  parts_->callers.Stop();
  AwaitWrites();
  parts_->log->Close();
  parts_->live_videos.Close();
}

}  // namespace wan::server
