// The states of the jobs that have not ended, and every transition between states:
//
//   Accept --> QUEUED --BeginNext--> RUNNING --End--> COMPLETED, FAILED, CANCELLED
//                ^  \--Cancel--> CANCELLED      \--> QUEUED again (the server stops)
//             Recover (from the store; RUNNING becomes QUEUED, or FAILED after max_attempts)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/api/model_file.h"
#include "server/jobs/deadline_timer.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/job_ledger.h"
#include "server/jobs/job_order.h"
#include "server/jobs/job_outlook.h"
#include "server/jobs/live_jobs.h"
#include "server/jobs/model_table.h"
#include "server/store/job_store.h"
#include "server/watch/listener.h"

namespace wan::server {

// A running attempt, as its runner sees it.
struct Attempt {
  wan::v1::Job job;
  absl::Time queued_since;
  absl::Duration waited;  // since then, however the wall clock was set meanwhile
  std::stop_token stop;
  std::shared_ptr<ReportSink> report;
};

// Thread-safe. A change of state and its event are stored in one transaction (JobLedger). Unless
// its comment says otherwise, a call returns before its change is on disk; EventLog::Flush waits
// for that. While a call holds the lock it looks at a bounded number of jobs, however many wait,
// and at each principal that has jobs waiting; a call that must tell all jobs after a place takes
// the lock many times.
class JobStates {
 public:
  // All must outlive the object except the event log, which must be destroyed before it: the log
  // calls back when a change is stored.
  struct Parts {
    LiveJobs& live;
    JobOrder& order;
    JobOutlook& outlook;
    JobLedger& ledger;
    ModelTable& models;
    DeadlineTimer& timer;
    const DeviceGroups& groups;
    // A job ends as FAILED after this many lost attempts without progress (server/jobs/attempts.h).
    int max_attempts = 3;
    std::vector<StateListener*> listeners;
    // Returns the number of steps in a job's savepoint. Called with the lock held, when the job has
    // lost an attempt.
    std::function<int(const std::string& job)> steps_kept;
    // Called on the log's thread with no lock held, once the store has a job's end.
    std::function<void(const std::string& job)> on_end_stored;
  };
  explicit JobStates(Parts parts) : parts_(std::move(parts)), live_(parts_.live) {}

  // Call first, once. Takes over the jobs that an earlier process left in the store, and returns
  // when that is on disk; `unfinished` are the store's QUEUED and RUNNING jobs, oldest first.
  absl::Status Recover(JobStore& store, std::vector<StoredJob> unfinished);

  using Accepted = std::function<void(absl::StatusOr<std::vector<wan::v1::Job>>)>;
  // Queues all jobs or none, and calls `done` with them, in the same order, once they are on disk:
  // on the store's thread, or on the caller's if they are refused at once. `done` must not block.
  // All have the same owner, whose quotas of queued jobs and device seconds must have room for
  // them. Call ModelTable::AddJob for each before, and ModelTable::RemoveJob if this ends with an
  // error.
  void Accept(std::vector<NewJob> jobs, Accepted done);

  // Lets `change` write to a job that has not ended, and returns the job, once the change is on its
  // way to the disk; nothing if there is no such job. Only priority, deadline and labels of the
  // request may change. A queued job takes its new place at once.
  std::optional<wan::v1::Job> Update(
      const std::string& job, const std::function<void(wan::v1::GenerationRequest&)>& change);

  // Ends a queued job at once, and asks a running job to stop. Does nothing to other jobs. If the
  // cause is a call, what it asks of a running job is stored as well: the job is then cancelled
  // also if the process dies before it has stopped.
  void Cancel(const std::string& job, StopCause cause, std::string_view reason);

  // A job as this process knows it. If neither member is set, ask the store.
  struct View {
    // The job, if it has not ended or its end is not on disk yet. Of a job whose end is not on disk
    // this tells the state before.
    std::optional<wan::v1::Job> job;
    // Whether the job is being accepted. It may not be on disk, so callers are not told of it,
    // whatever the store returns.
    bool hidden = false;
  };
  View Look(const std::string& job) const;
  // The report up to now of an attempt of this process; nothing if the end of the job is on disk.
  std::optional<wan::v1::JobReport> FindReport(const std::string& job) const;

  // The attempts of a group's runner.

  // Starts the next attempt in a device group that runs none; returns nullopt if no job can run
  // there now.
  std::optional<Attempt> BeginNext(int group);
  // Appends events of the running attempt. `progress` replaces the job's if it is set.
  void AddProgress(const std::string& job, std::vector<wan::v1::Event> events,
                   const std::optional<wan::v1::StepProgress>& progress);
  // Notes what the running attempt makes the video from: in the job's row, which is stored when the
  // attempt ends, and the model's files, which are stored at once.
  void NoteOrigin(const std::string& job, const wan::v1::Provenance& provenance,
                  std::span<const ModelFile> files);
  // Changes the row of the running job. The change is stored when the attempt ends.
  void Annotate(const std::string& job, const std::function<void(wan::v1::Job&)>& change);
  // Asks a running job to stop and be requeued if a waiting one should take over in its group
  // (JobOrder::SuccessorOf). Call it when a step has ended.
  void PreemptRunning(const std::string& job, int gap);
  // Whether the running job, if it ends now, is put back into the queue.
  bool WillRunAgain(const std::string& job) const;
  // Ends the running attempt and returns the job's new state. If the job was asked to stop, that
  // decides, whatever `result` is: a cancelled job becomes CANCELLED, and when the server stops the
  // job becomes QUEUED again unless it has completed or is tied to its caller.
  wan::v1::JobState End(const std::string& job,
                        const absl::StatusOr<std::vector<wan::v1::Artifact>>& result);
  // Ends a running attempt after its device was lost, counts it as lost, and returns the job's
  // new state: QUEUED; FAILED (ATTEMPTS_EXHAUSTED) if it has lost too many attempts; CANCELLED if
  // it was asked to stop, or if it is tied to its caller and no group serves any more. Its group
  // must have left before.
  wan::v1::JobState EndLost(const std::string& job, std::string_view reason);
  // Puts the running job back into the queue because it cannot run now (the data folder takes no
  // writes), without counting a lost attempt. A job that was asked to stop ends as in End. Returns
  // its new state.
  wan::v1::JobState Postpone(const std::string& job, std::string_view reason);

  // Drain and stop.

  // After this, Accept returns `refusal`, until another call brings another one, and BeginNext
  // returns nullopt. The running attempts no longer count as lost, however the process ends.
  // Returns the names of the running jobs, by group.
  std::vector<std::string> Close(const absl::Status& refusal);
  // Takes Close back: Accept and BeginNext work again, unless no group serves any more, and running
  // attempts count again.
  void Reopen();
  // After this, Accept refuses with DEVICE_LOST and BeginNext returns nullopt. The state of no job
  // changes. Call it when the last group has left.
  void LoseDevice();
  // Waits until the job does not run, or Close was taken back. Returns false if neither is so at
  // `until`, a time of the steady clock.
  bool AwaitEnd(const std::string& job, absl::Time until);
  // Asks a running job to stop and be requeued, for a reason that its Requeued event tells. Does
  // nothing to other jobs, nor unless Close has been called.
  void RequeueRunning(const std::string& job, std::string_view reason);

 private:
  // The two parts of Accept: before the jobs are on disk, and after.
  absl::StatusOr<std::vector<JobAddition>> Reserve(std::vector<NewJob> jobs);
  absl::StatusOr<std::vector<wan::v1::Job>> Settle(const std::vector<JobAddition>& additions,
                                                   const absl::Status& inserted);
  // Takes over one job that an earlier process left; `trace` is that of its latest attempt.
  // `shift` turns its times into those of the steady clock.
  void TakeOver(StoredJob stored, AttemptTrace trace, absl::Duration shift)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // The attempt has ended: counts the time for which it held the device.
  LiveJob& EndHold(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Ends the job, whose attempt has ended, if it was asked to stop. Returns whether it was.
  bool FinishIfStopped(LiveJob& live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Requeues a job that lost its attempt, or ends it if it may lose no more.
  void RequeueLost(LiveJob& live, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Puts a RUNNING job back into the queue.
  void Requeue(LiveJob& live, RequeueCause cause, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  void FinishFailed(LiveJob& live, const absl::Status& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  void FinishCancelled(LiveJob& live, StopCause cause, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Ends a job with its last event.
  void Finish(LiveJob& live, wan::v1::JobState state, const absl::Status& error,
              wan::v1::Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  void SetState(LiveJob& live, wan::v1::JobState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  wan::v1::Job ViewOf(const LiveJob& live) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);

  const Parts parts_;
  LiveJobs& live_;
  uint64_t next_age_ ABSL_GUARDED_BY(live_.mutex) = 1;
};

}  // namespace wan::server
