#include "server/jobs/job_service_parts.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "server/conversion/names.h"
#include "server/jobs/engine_call.h"
#include "server/store/canary_record.h"
#include "server/store/folder_owner.h"
#include "server/store/sqlite_job_store.h"

namespace wan::server {
namespace {

constexpr char kDatabaseFile[] = "jobs.db";
constexpr char kBallastFile[] = "ballast";
constexpr char kRatesFile[] = "stage_rates";
constexpr char kDigestsFile[] = "model_digests";

const Quotas& Unlimited() {
  static const auto* const unlimited = new Quotas();
  return *unlimited;
}

std::function<std::optional<uint64_t>()> FreeBytesOf(const JobServiceOptions& options) {
  if (options.free_bytes != nullptr) return options.free_bytes;
  return [store = ArtifactStore(options.data_dir)] { return store.FreeBytes(); };
}

std::vector<StateListener*> With(std::vector<StateListener*> listeners, StateListener& first) {
  listeners.insert(listeners.begin(), &first);
  return listeners;
}

}  // namespace

JobService::Parts::Parts(const JobServiceOptions& options, const std::vector<Engine*>& engines,
                         Clock& clock_in)
    : disk(options.disk_reserve_bytes, FreeBytesOf(options)),
      listeners(With(With(options.listeners, queue_estimates), disk)),
      webhook_problem(options.webhook_problem),
      new_trace(options.new_trace),
      clock(clock_in),
      quotas(options.quotas == nullptr ? Unlimited() : *options.quotas),
      store([this, folder = options.data_dir, open = options.open_store,
             sync = options.sync_database] { return OpenStore(folder, open, sync); },
            [this, file = options.data_dir / kDatabaseFile] {
              return OpenSqliteJobStoreForReading(
                  file, [this](const absl::Status& problem) { Tell(problem); });
            },
            {&clock_in,
             [this](std::string_view operation, absl::Duration taken) {
               for (StateListener* listener : listeners) listener->OnStoreWrite(operation, taken);
             }}),
      database(options.data_dir / kDatabaseFile),
      ballast(options.data_dir / kBallastFile),
      artifacts(options.data_dir, KeepObjects(options.objects)),
      savepoints(options.data_dir, objects.has_value() ? &*objects : nullptr),
      input_links(options.data_dir),
      links_inputs(options.open_store == nullptr),
      live_videos(artifacts),
      digests(
          options.data_dir / kDigestsFile, [this](const absl::Status& problem) { Tell(problem); },
          [this] { receipt_files.Complete(); }),
      storage(clock),
      log(std::make_unique<EventLog>(store, clock,
                                     [this](const absl::Status& problem) {
                                       ReportIfStorage(problem);
                                       Tell(problem);
                                     })),
      progress(clock),
      timer(clock),
      groups(engines, options.device_names, options.may_have),
      models(groups, clock, listeners),
      model_operations({.table = models,
                        .groups = groups,
                        .clock = clock,
                        .warm_up_on_load = options.warm_up_on_load,
                        .warm_up_shapes = options.warm_up_shapes,
                        .sinks = options.sinks,
                        .listeners = listeners,
                        .on_device_lost =
                            [this](int group, const absl::Status& problem) {
                              LoseGroup(group, DeviceLoss::kError, problem);
                            },
                        .roots = options.model_roots,
                        .folders = options.lora_folders,
                        .digests = digests}),
      live(clock, options.queue_capacity, groups.size()),
      ledger(store, *log),
      receipt_files(store, *log, ledger, digests),
      outlook({.live = live,
               .ledger = ledger,
               .groups = groups,
               .models = models,
               .estimator = estimator,
               .listeners = listeners}),
      order(
          {.live = live, .outlook = outlook, .groups = groups, .models = models, .quotas = quotas}),
      states({.live = live,
              .order = order,
              .outlook = outlook,
              .ledger = ledger,
              .models = models,
              .timer = timer,
              .groups = groups,
              .max_attempts = options.max_attempts,
              .listeners = listeners,
              .steps_kept = [this](const std::string& job) { return savepoints.StepsKept(job); },
              .on_end_stored =
                  [this](const std::string& job) {
                    savepoints.Remove(job);
                    input_links.Remove(job);
                    live_videos.Forget(job);
                  }}),
      ended_jobs({.store = store,
                  .states = states,
                  .turns = turns,
                  .artifacts = artifacts,
                  .clock = clock,
                  .on_refused = [this](const absl::Status& problem) { storage.Report(problem); },
                  .on_problem = [this](const absl::Status& problem) { Tell(problem); },
                  .make_room = [this] { return MakeRoom(); },
                  .keep_room = [this] { ballast.Fill(); }}),
      retention(options.retention,
                {.store = store,
                 .clock = clock,
                 .in_use = [this](const std::string& job) { return artifacts.InUse(job); },
                 .remove_job = [this](const std::string& job) { return ended_jobs.Delete(job); },
                 .remove_files =
                     [this](const std::string& job) { return ended_jobs.DeleteArtifacts(job); },
                 .tidy =
                     [this] {
                       ended_jobs.RemoveLeftFiles();
                       ended_jobs.KeepRoom();
                     },
                 .on_round =
                     [this](const RetentionRound& round) {
                       for (StateListener* listener : listeners) listener->OnRetention(round);
                     },
                 .on_problem = [this](const absl::Status& problem) { Tell(problem); }}),
      callers(clock, options.caller_grace,
              [this](const std::string& job) {
                states.Cancel(job, StopCause::kCallerGone, kCallerWentAway);
              }),
      drainer({.states = states,
               .outlook = outlook,
               .models = model_operations,
               .log = *log,
               .clock = clock,
               .listeners = listeners}) {
  std::vector<std::string> devices;
  double slowest = std::numeric_limits<double>::max();  // the lowest assumed rate of all groups
  for (int group = 0; group < groups.size(); ++group) {
    runners.emplace_back(RunnerParts{.groups = groups,
                                     .group = group,
                                     .states = states,
                                     .ledger = ledger,
                                     .store = store,
                                     .models = models,
                                     .artifacts = artifacts,
                                     .savepoints = savepoints,
                                     .input_links = input_links,
                                     .digests = digests,
                                     .receipt_files = receipt_files,
                                     .estimator = estimator,
                                     .progress = progress,
                                     .storage = storage,
                                     .live_videos = live_videos,
                                     .clock = clock,
                                     .sinks = options.sinks,
                                     .listeners = listeners,
                                     .on_device_lost =
                                         [this](int lost, const absl::Status& problem) {
                                           LoseGroup(lost, DeviceLoss::kError, problem);
                                         },
                                     .savepoint_interval = options.savepoint_interval,
                                     .preempt_priority_gap = options.preempt_priority_gap,
                                     .server_version = options.server_version,
                                     .server_revision = options.server_revision,
                                     .data_dir = options.data_dir.string()});
    const DeviceDescription& device = groups.device(group);
    if (device.assumed_rate > 0) slowest = std::min(slowest, device.assumed_rate);
    devices.push_back(absl::StrCat(device.device, " ", device.name, " ", device.dtype));
  }
  if (slowest < std::numeric_limits<double>::max()) estimator.Assume(slowest);
  queue_estimates.Start({.groups = &groups,
                         .models = &models,
                         .store = &store,
                         .input_links = &input_links,
                         .order = &order,
                         .estimator = &estimator,
                         .clock = &clock,
                         .file = options.data_dir / kRatesFile,
                         .device = absl::StrJoin(devices, ", ")});
}

JobObjects* JobService::Parts::KeepObjects(ObjectStore* store_of_objects) {
  if (store_of_objects == nullptr) return nullptr;
  return &objects.emplace(*store_of_objects, clock,
                          [this](const absl::Status& problem) { Tell(problem); });
}

JobService::Parts::~Parts() {
  storage.Stop();
  retention.Stop();
  callers.Stop();
  drainer.Join();
  digests.Join();
  log.reset();
  queue_estimates.Finish();
}

void JobService::Parts::LoseGroup(int group, DeviceLoss cause, const absl::Status& problem) {
  if (groups.Leave(group, problem) > 0) {
    models.OnGroupLeft();
    for (StateListener* listener : listeners) {
      listener->OnGroupLost(group, groups.device(group).device, problem);
    }
  } else {
    states.LoseDevice();
    for (StateListener* listener : listeners) listener->OnDeviceLost(cause, problem);
  }
  groups.executor(group).Halt();
}

bool JobService::Parts::RunNext(int group) {
  if (!runners[static_cast<size_t>(group)].RunNext()) {
    if (groups.size() > 1 && storage.status().ok()) {
      const std::optional<std::string> missing = order.ModelToLoad(group);
      if (missing.has_value()) model_operations.LoadMissing(*missing, group);
    }
    return false;
  }
  // After an attempt's end, another group may be able to run a job: this job if it was requeued, or
  // a job that the owner's quota held back.
  groups.WakeAll();
  return true;
}

void JobService::Parts::CheckDevice(int group, const std::filesystem::path& data_dir) {
  const auto canary = CallEngine([&] { return groups.engine(group).RunCanary(); });
  absl::Status status = canary.status();
  if (canary.ok() && canary->has_value()) {
    absl::MutexLock lock(&canary_mutex);
    status = CompareCanary(data_dir, **canary);
  }
  if (status.ok()) return;
  if (IsDeviceLost(status)) return LoseGroup(group, DeviceLoss::kCanary, status);
  for (StateListener* listener : listeners) listener->OnProblem(status);
}

absl::StatusOr<std::unique_ptr<JobStore>> JobService::Parts::OpenStore(
    const std::filesystem::path& folder, const StoreOpener& open,
    const std::function<absl::Status()>& sync) {
  std::error_code ignored;  // ignore errors here: if the folder is missing, opening the file fails
                            // with a message
  std::filesystem::create_directories(folder, ignored);
  auto on_problem = [this](const absl::Status& problem) { Tell(problem); };
  if (open != nullptr) return open(on_problem);
  if (absl::Status bound = BindFolder(folder, /*database_id=*/""); !bound.ok()) return bound;
  return OpenSqliteJobStore(folder / kDatabaseFile, on_problem, sync);
}

StorageStats JobService::Parts::StorageNow() {
  StorageStats stats;
  const auto totals = store.TotalsOfEnded(std::nullopt);
  if (totals.ok()) {
    stats.artifact_bytes = 0;
    for (const auto& [state, of_state] : *totals) {
      *stats.artifact_bytes += static_cast<uint64_t>(of_state.file_bytes);
    }
  }
  for (const char* const suffix : {"", "-wal"}) {
    std::error_code missing;  // a missing file counts zero bytes
    const uintmax_t bytes = std::filesystem::file_size(database.string() + suffix, missing);
    if (!missing) stats.database_bytes += bytes;
  }
  return stats;
}

absl::Status JobService::Parts::Recover() {
  absl::Status removed = artifacts.EmptyStaging();
  absl::StatusOr<std::vector<StoredJob>> unfinished = store.Unfinished();
  absl::Status status = unfinished.status();
  if (status.ok()) {
    // Remove the published files of attempts that were killed after publishing and before their
    // last event. No new job can begin yet.
    for (const StoredJob& stored : *unfinished) {
      if (stored.job.attempt() == 0) continue;
      removed.Update(artifacts.RemoveAttempt(stored.job.name(), stored.job.attempt()));
    }
    status = states.Recover(store, *std::move(unfinished));
  }
  if (status.ok()) {
    // JobStates now knows all jobs that may continue; jobs that Recover has ended need no savepoint
    // and no input any more. A job that is being accepted already has its inputs, because the
    // server may take over the jobs long after its start.
    const auto goes_on = [&](const std::string& job) {
      const JobStates::View view = states.Look(job);
      return view.hidden || view.job.has_value();
    };
    removed.Update(savepoints.RemoveLeftovers(goes_on));
    removed.Update(input_links.RemoveLeftovers(goes_on));
  }
  for (const wan::v1::Model& model : models.List()) {
    if (model.state() == wan::v1::MODEL_STATE_READY) queue_estimates.OnModelState(model);
  }
  if (!removed.ok()) Tell(removed);  // leftovers only cost disk space
  recovered = status.ok() || ReasonOf(status) == kReasonStorageUnavailable;
  sweep = std::jthread([this](const std::stop_token& stop) { RemoveLeftovers(stop); });
  return status;
}

void JobService::Parts::RemoveLeftovers(const std::stop_token& stop) {
  absl::Status removed =
      artifacts.RemoveLeftovers([&](const std::string& job) -> std::optional<ArtifactStore::Kept> {
        if (stop.stop_requested()) return std::nullopt;
        return ended_jobs.KeptFilesOf(job);
      });
  removed.Update(savepoints.RemoveLeftObjects([&](const std::string& job) -> std::optional<bool> {
    if (stop.stop_requested()) return std::nullopt;
    return ended_jobs.HasEnded(job);
  }));
  if (!removed.ok()) Tell(removed);  // leftovers only cost disk space
}

absl::Status JobService::Parts::OpenForWriting() {
  absl::MutexLock lock(&probe_mutex);
  if (absl::Status opened = store.Reopen(); !opened.ok()) return opened;
  return recovered ? absl::OkStatus() : Recover();
}

void JobService::Parts::AwaitAccepted() {
  absl::MutexLock lock(&accepting_mutex);
  const auto none = [this]()
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(accepting_mutex) { return accepting == 0; };
  accepting_mutex.Await(absl::Condition(&none));
}

bool JobService::Parts::MakeRoom() {
  // If the server was started on a full disk, the database is open for reading only.
  return ballast.Release() && OpenForWriting().ok();
}

absl::Status JobService::Parts::ProbeStorage() {
  if (absl::Status opened = OpenForWriting(); !opened.ok()) return opened;
  if (absl::Status status = store.CheckWritable(); !status.ok()) return status;
  uint64_t least_free_bytes = 0;
  for (const JobRunner& runner : runners) {
    least_free_bytes = std::max(least_free_bytes, runner.least_free_bytes());
  }
  return artifacts.CheckWritable(least_free_bytes);
}

}  // namespace wan::server
