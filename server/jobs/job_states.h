// Keeps the states of the jobs that have not ended, and makes every transition between states:
//
//   Accept --> QUEUED --BeginNext--> RUNNING --End--> COMPLETED, FAILED, CANCELLED
//                ^  \--Cancel--> CANCELLED      \--> QUEUED again (the server stops)
//             Recover (from the store; RUNNING becomes QUEUED, or FAILED after max_attempts)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
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

// The facts that the runner of an attempt needs.
struct Attempt {
  wan::v1::Job job;
  absl::Time queued_since;
  absl::Duration waited;  // time since then, on the steady clock
  std::stop_token stop;
  std::shared_ptr<ReportSink> report;
};

// Thread-safe. A change of state and its event are stored in one transaction (JobLedger). Unless
// its comment says otherwise, a function returns before its change is on disk; EventLog::Flush
// waits for that. While a function holds the lock, it looks at a bounded number of jobs and at each
// principal that has waiting jobs. Functions that announce the positions of many jobs take the lock
// several times.
class JobStates {
 public:
  // All members must outlive the object. The event log must be destroyed before the object, because
  // it calls back when a change is stored.
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
    // Returns how many steps the job's savepoint has. JobStates calls the function with the lock
    // held, after the job has lost an attempt.
    std::function<int(const std::string& job)> steps_kept;
    // JobStates calls this function on the log's thread with no lock held, once the store has a
    // job's end.
    std::function<void(const std::string& job)> on_end_stored;
  };
  explicit JobStates(Parts parts) : parts_(std::move(parts)), live_(parts_.live) {}

  // Call Recover once, before any other method. Takes over the jobs that an earlier process left in
  // the store, and returns when their new states are on disk; `unfinished` are the store's QUEUED
  // and RUNNING jobs, oldest first.
  absl::Status Recover(JobStore& store, std::vector<StoredJob> unfinished);

  // Returns OK if Accept would have room for this many jobs of the owner now, without checking the
  // device time that the jobs need. Call CheckRoom to avoid work on jobs that would be refused;
  // Accept checks again.
  absl::Status CheckRoom(const std::string& owner, int jobs) const;

  using Accepted = std::function<void(absl::StatusOr<std::vector<wan::v1::Job>>)>;
  // Queues all jobs or none. Calls `done` with the jobs, in the same order, once they are on disk:
  // on the store's thread, or on the caller's if they are refused at once. `done` must not block.
  // All jobs must have the same owner, whose quotas of queued jobs and device seconds must have
  // room for all of them. Before Accept, call ModelTable::AddJob for each job; if `done` receives
  // an error, call ModelTable::RemoveJob for each job.
  void Accept(std::vector<NewJob> jobs, Accepted done);

  // Calls `change` with the request of a job that has not ended, queues the write to disk and
  // returns the job; returns nothing if there is no such job. Only priority, deadline and labels of
  // the request may change. A queued job moves to its new position at once.
  std::optional<wan::v1::Job> Update(
      const std::string& job, const std::function<void(wan::v1::GenerationRequest&)>& change);

  // Ends a queued job at once, and asks a running job to stop. Does nothing to a job that has
  // ended. If the cause is a call, stores the cancellation of a running job at once, so that the
  // job becomes CANCELLED even if the process dies before the job has stopped.
  void Cancel(const std::string& job, StopCause cause, std::string_view reason);

  // A job as the states know it. If neither member is set, the caller must ask the store.
  struct View {
    // Set if the job has not ended or its end is not on disk yet; if its end is not on disk, this
    // is the job as it was before the end.
    std::optional<wan::v1::Job> job;
    // Whether the job is being accepted. The job may not be on disk yet, so callers must not see it
    // even if the store returns it.
    bool hidden = false;
  };
  View Look(const std::string& job) const;
  // Returns the report so far of the job's latest attempt in this process; nothing if it had none,
  // or if the job's end is on disk.
  std::optional<wan::v1::JobReport> FindReport(const std::string& job) const;

  // The following functions are for the runner of a group.

  // Begins the next attempt in a device group that runs none; returns nullopt if the group can run
  // no job now.
  std::optional<Attempt> BeginNext(int group);
  // Appends events of the running attempt. If `progress` is set, replaces the job's progress by it.
  void AddProgress(const std::string& job, std::vector<wan::v1::Event> events,
                   const std::optional<wan::v1::StepProgress>& progress);
  // Records in the job's row, which is stored when the attempt ends, how the running attempt
  // computes.
  void NoteProvenance(const std::string& job, const wan::v1::Provenance& provenance);
  // Changes the row of the running job by calling `change`. The row is stored when the attempt
  // ends.
  void Annotate(const std::string& job, const std::function<void(wan::v1::Job&)>& change);
  // Asks a running job to stop and be requeued if a waiting job should run in its group instead
  // (JobOrder::SuccessorOf). Call PreemptRunning when a step of the job has ended.
  void PreemptRunning(const std::string& job, int gap);
  // Returns whether the running job will be put back into the queue when it stops.
  bool WillRunAgain(const std::string& job) const;
  // Ends the running attempt and returns the job's new state. A cancelled job becomes CANCELLED
  // whatever `result` is. A job that was asked to go back into the queue becomes QUEUED, unless it
  // has completed or is tied to a caller whom the server's stop cuts off.
  wan::v1::JobState End(const std::string& job,
                        const absl::StatusOr<std::vector<wan::v1::Artifact>>& result);
  // Ends a running attempt after its device was lost, counts the attempt as lost, and returns the
  // job's new state: QUEUED; FAILED (ATTEMPTS_EXHAUSTED) if the job has lost too many attempts;
  // CANCELLED if it was asked to stop, or if it is tied to its caller and no group serves any more.
  // Before, call DeviceGroups::Leave for the group.
  wan::v1::JobState EndLost(const std::string& job, std::string_view reason);
  // Puts the running job back into the queue because the data folder takes no writes; the attempt
  // does not count as lost. A job that was asked to stop ends as in End. Returns the job's new
  // state.
  wan::v1::JobState Postpone(const std::string& job, std::string_view reason);

  // The following functions are for drain and stop.

  // After Close, Accept fails with the `refusal` of the latest call, and BeginNext returns nullopt.
  // However the process ends, the running attempts will not count as lost. Returns the names of the
  // running jobs, in the order of their groups.
  std::vector<std::string> Close(const absl::Status& refusal);
  // Reverts Close: Accept and BeginNext work again if any group serves, and running attempts can
  // count as lost again.
  void Reopen();
  // Call LoseDevice when the last group has stopped serving. After LoseDevice, Accept refuses jobs
  // with DEVICE_LOST and BeginNext returns nullopt. Does not change the state of any job.
  void LoseDevice();
  // Waits until the job is not running, or until Reopen is called. Returns false if neither has
  // happened by `until`, which is a time of the steady clock.
  bool AwaitEnd(const std::string& job, absl::Time until);
  // Asks a running job to stop and be requeued; `reason` goes into its Requeued event. Does nothing
  // if the job is not running or Close has not been called.
  void RequeueRunning(const std::string& job, std::string_view reason);

 private:
  // Returns OK if the server accepts jobs now and the queue has room for this many.
  absl::Status CheckQueue(int jobs) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // The two parts of Accept: Reserve runs before the jobs are on disk, Settle when the store has
  // answered.
  absl::StatusOr<std::vector<JobAddition>> Reserve(std::vector<NewJob> jobs);
  absl::StatusOr<std::vector<wan::v1::Job>> Settle(const std::vector<JobAddition>& additions,
                                                   const absl::Status& inserted);
  // Takes over one job that an earlier process left. `trace` belongs to the job's latest attempt;
  // `shift` is the steady clock's time minus the wall clock's.
  void TakeOver(StoredJob stored, AttemptTrace trace, absl::Duration shift)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Call EndHold when the attempt has ended: charges the owner for the time for which the attempt
  // held the device.
  LiveJob& EndHold(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // If the job was cancelled, makes the job CANCELLED after its attempt has ended. Returns whether
  // the job was cancelled.
  bool FinishIfStopped(LiveJob& live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Requeues a job that lost its attempt, or makes it FAILED after max_attempts.
  void RequeueLost(LiveJob& live, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Puts a RUNNING job back into the queue.
  void Requeue(LiveJob& live, RequeueCause cause, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  void FinishFailed(LiveJob& live, const absl::Status& error)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  void FinishCancelled(LiveJob& live, StopCause cause, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Moves a job to its final state; `event` becomes its last event.
  void Finish(LiveJob& live, wan::v1::JobState state, const absl::Status& error,
              wan::v1::Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  void SetState(LiveJob& live, wan::v1::JobState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  wan::v1::Job ViewOf(const LiveJob& live) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);

  const Parts parts_;
  LiveJobs& live_;
  uint64_t next_age_ ABSL_GUARDED_BY(live_.mutex) = 1;
};

}  // namespace wan::server
