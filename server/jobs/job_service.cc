#include "server/jobs/job_service.h"

#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/conversion/job_update.h"
#include "server/conversion/names.h"
#include "server/jobs/job_service_parts.h"
#include "server/jobs/job_table.h"
#include "server/jobs/list_query.h"
#include "server/jobs/receipts.h"
#include "server/quota/stored_bytes.h"

namespace wan::server {
namespace {

constexpr char kDeadlineExceeded[] = "deadline exceeded";

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
                       },
                       [&parts] { return parts.disk.CheckRoom(); },
                       [&parts](const absl::Status& status) {
                         for (StateListener* listener : parts.listeners) {
                           listener->OnDiskRoom(status);
                         }
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

void JobService::SetLimits(const RetentionPolicy& retention, uint64_t disk_reserve_bytes) {
  parts_->disk.SetReserve(disk_reserve_bytes);
  parts_->retention.SetPolicy(retention);
}

void JobService::QuotasChanged() { parts_->groups.WakeAll(); }

absl::StatusOr<wan::v1::Job> JobService::Update(const wan::v1::UpdateJobRequest& request) {
  const absl::StatusOr<JobUpdate> update = ParseJobUpdate(request, parts_->clock.Now());
  if (!update.ok()) return update.status();
  std::optional<wan::v1::Job> live = parts_->table.Update(
      update->job, [&](wan::v1::GenerationRequest& values) { update->ApplyTo(values); });
  if (live.has_value()) {
    if (absl::Status stored = parts_->log->Flush(); !stored.ok()) {
      return ChangeNotStoredError(stored);
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
                       std::function<void(const absl::StatusOr<wan::v1::DrainResponse>&)> done) {
  parts_->drainer.Begin(mode, timeout, std::move(done));
}

absl::StatusOr<wan::v1::UndrainResponse> JobService::Undrain() {
  if (absl::Status status = parts_->drainer.Undrain(); !status.ok()) return status;
  wan::v1::UndrainResponse response;
  response.set_queued_jobs(parts_->table.Stats().queued_total);
  parts_->groups.WakeAll();
  return response;
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
