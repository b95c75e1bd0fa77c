// The jobs that have not ended, their states, and every transition between states:
//
//   Accept --> QUEUED --BeginNext--> RUNNING --End--> COMPLETED, FAILED, CANCELLED
//                ^  \--Cancel--> CANCELLED      \--> QUEUED again (the server stops)
//             Recover (from the store; RUNNING becomes QUEUED, or FAILED after max_attempts)
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/jobs/attempts.h"
#include "server/jobs/deadline_timer.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/job_sinks.h"
#include "server/jobs/job_stats.h"
#include "server/jobs/model_registry.h"
#include "server/jobs/stop_decision.h"
#include "server/jobs/time_estimator.h"
#include "server/quota/quotas.h"
#include "server/quota/usage_account.h"
#include "server/store/job_store.h"
#include "server/watch/event_log.h"
#include "server/watch/listener.h"

namespace wan::server {

// What a runner needs to know of a running attempt.
struct Attempt {
  wan::v1::Job job;
  absl::Time queued_since;
  absl::Duration waited;  // since then, however the wall clock was set meanwhile
  std::stop_token stop;
  std::shared_ptr<ReportSink> report;
};

// A job that is to be accepted.
struct NewJob {
  StoredJob stored;
  std::shared_ptr<const std::string> image;  // null: none
  std::shared_ptr<const PlannedWork> work;
};

// Thread-safe. A change of state and its event are stored in one transaction. Unless its comment
// says otherwise, a call returns before its change is on disk; EventLog::Flush waits for that.
// While a call holds the lock it looks at a bounded number of jobs, however many wait, and at each
// principal that has jobs waiting; a call that must tell all jobs behind a place takes the lock
// many times.
class JobTable {
 public:
  // All must outlive the table except the log, which must be destroyed before it: the log calls
  // back into the table when a change is stored.
  struct Parts {
    JobStore& store;
    EventLog& log;
    ModelRegistry& models;
    DeadlineTimer& timer;
    TimeEstimator& estimator;
    Clock& clock;
    const DeviceGroups& groups;
    int queue_capacity = 0;
    // A job ends as FAILED after this many lost attempts without progress (server/jobs/attempts.h).
    int max_attempts = 3;
    std::vector<StateListener*> listeners;
    const Quotas& quotas;
    // Returns how many steps a job's savepoint has. Called with the table's lock held, when the job
    // has lost an attempt.
    std::function<int(const std::string& job)> steps_kept = [](const std::string&) { return 0; };
    // Called on the log's thread with no lock held, once the store has a job's end.
    std::function<void(const std::string& job)> on_end_stored = [](const std::string&) {};
  };
  explicit JobTable(Parts parts);

  // Call first, once. Takes over the jobs that an earlier process left, and returns when that is on
  // disk.
  absl::Status Recover();

  using Accepted = std::function<void(absl::StatusOr<std::vector<wan::v1::Job>>)>;
  // Queues all jobs or none, and calls `done` with them, in the same order, once they are on disk:
  // on the store's thread, or on the caller's if they are refused at once. `done` must not block.
  // All have the same owner, whose quotas of queued jobs and device seconds must have room for
  // them. Call ModelRegistry::AddJob for each before, and ModelRegistry::RemoveJob if this ends
  // with an error.
  void Accept(std::vector<NewJob> jobs, Accepted done);

  // Lets `change` write to a job that has not ended, and returns the job, once the change is on its
  // way to the disk; nothing if there is no such job. Only priority, deadline and labels of the
  // request may change. A queued job takes its new place at once.
  std::optional<wan::v1::Job> Update(
      const std::string& job, const std::function<void(wan::v1::GenerationRequest&)>& change);

  // Removes and returns at most `limit` of the model's jobs that were taken over from an earlier
  // process and whose work is not known. Plan them, and call SetWork.
  std::vector<wan::v1::Job> TakeUnplanned(const std::string& model, size_t limit);
  // From now on the job counts in estimates. Does nothing if it has ended.
  void SetWork(const std::string& job, std::shared_ptr<const PlannedWork> work);

  // When a job of this owner and priority would start, if it was accepted now.
  struct Outlook {
    int jobs_ahead = 0;
    std::optional<absl::Duration> time;  // nothing while unknown
  };
  Outlook OutlookFor(const std::string& owner, int priority) const;

  // Starts the next attempt in a device group that runs none; returns nullopt if no job can run
  // there now.
  std::optional<Attempt> BeginNext(int group);

  // Returns the model of the first job that no group can begin now but this one, once it has loaded
  // the model: all that have the model are busy. Nothing if the group can begin a job, or if there
  // is no such job.
  std::optional<std::string> ModelToLoad(int group);

  // Appends events of the running attempt. `progress` replaces the job's if it is set.
  void AddProgress(const std::string& job, std::vector<wan::v1::Event> events,
                   const std::optional<wan::v1::StepProgress>& progress);

  // Changes the row of the running job. The change is stored when the attempt ends.
  void Annotate(const std::string& job, const std::function<void(wan::v1::Job&)>& change);

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

  // Ends a queued job at once, and asks a running job to stop. Does nothing to other jobs. If the
  // cause is a call, what it asks of a running job is stored as well: the job is then cancelled
  // also if the process dies before it has stopped.
  void Cancel(const std::string& job, StopCause cause, std::string_view reason);

  // Returns the job if it has not ended or its end is not on disk yet; otherwise ask the store. Of
  // a job whose end is not on disk it tells the state before.
  std::optional<wan::v1::Job> Find(const std::string& job) const;
  // Whether the job is being accepted: it is not on disk for sure, so nobody is told of it,
  // whatever the store says.
  bool Hides(const std::string& job) const;
  std::optional<wan::v1::JobReport> FindReport(const std::string& job) const;
  JobStats Stats() const;
  // What the principal uses, without its stored bytes.
  wan::v1::Usage UsageOf(const std::string& owner) const;

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
  // What is known of the running jobs, by group.
  std::vector<RunningOutlook> Running() const;
  // Waits until the job does not run, or the table is open. Returns false if neither is so at
  // `until`, a time of the steady clock.
  bool AwaitEnd(const std::string& job, absl::Time until);
  // Asks a running job to stop and be requeued, for a reason that its Requeued event tells. Does
  // nothing to other jobs, nor while the table is open.
  void RequeueRunning(const std::string& job, std::string_view reason);
  // Asks a running job to stop and be requeued if a job that waits should take over in its group,
  // whose priority is higher by `gap` (server/jobs/preemption.h). Call it when a step has ended. Of
  // several running jobs the one of the lowest priority gives way, one only for each that
  // waits, and none while a group that can run it is free.
  void PreemptRunning(const std::string& job, int gap);
  // Whether the running job, if it ends now, is put back into the queue.
  bool WillRunAgain(const std::string& job) const;

 private:
  struct LiveJob {
    StoredJob stored;
    bool accepting = false;  // not on disk yet, so no caller knows its name
    // What callers see of a job that has ended, until its end is on disk: the job before that.
    std::optional<wan::v1::Job> before_end;
    uint64_t age = 0;
    absl::Time queued_since;                  // of the wall clock
    absl::Time queued_instant;                // the same of steady_
    std::shared_ptr<const PlannedWork> work;  // null while unknown
    // How long the running attempt was estimated to take when it began.
    std::optional<absl::Duration> estimate;
    // How much of that earlier attempts have done, so that this one leaves it out.
    absl::Duration head_start;
    // Of the running attempt, times of steady_: when it began, and when job.progress was last set.
    absl::Time began;
    absl::Time progress_time;
    std::stop_source stop;
    std::optional<StopCause> stop_cause;
    std::optional<std::string> requeue;  // why it is put back into the queue when it has stopped
    bool preempted = false;              // by another job, and not by the end of the server
    std::string successor;               // the job that preempted it
    int group = 0;                       // of the running attempt
    int passed_over = 0;                 // how often a group took the job behind it (TakeFor)
    std::string stop_reason;
    // Of the latest attempt in this process.
    std::shared_ptr<ReportSink> report;
    AttemptTrace trace;
  };
  using LiveJobs = std::unordered_map<std::string, LiveJob>;

  // Returns null if there is no such job, or if it is being accepted.
  LiveJob* FindLive(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The two parts of Accept: before the jobs are on disk, and after.
  absl::StatusOr<std::vector<JobAddition>> Reserve(std::vector<NewJob> jobs);
  absl::StatusOr<std::vector<wan::v1::Job>> Settle(const std::vector<JobAddition>& additions,
                                                   const absl::Status& inserted);

  // Takes over one job that an earlier process left; `trace` is that of its latest attempt.
  // `shift` turns its times into those of steady_.
  void RecoverOne(StoredJob stored, AttemptTrace trace, absl::Duration shift)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Counts the time for which the attempt that has just ended held the device.
  void EndHold(LiveJob& live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What a device group does now, and did last.
  struct GroupState {
    std::string running;       // the job; empty: none
    std::string latest_model;  // of its last attempt, whose weights are at hand; empty before that
  };
  GroupState& StateOf(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return groups_[static_cast<size_t>(group)];
  }
  const GroupState& StateOf(int group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return groups_[static_cast<size_t>(group)];
  }
  bool IsRunning(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the group's next job from the queue: the first that it can run. It leaves that one to a
  // group that ran the job's model last if one of the next jobs, as many as there are other groups,
  // has the same priority and the model that this group ran last; as often at most, for one job, as
  // there are other groups.
  std::optional<QueueEntry> TakeFor(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether another group ran the model last and can run it again.
  bool RanElsewhere(int group, const std::string& model) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the running job is the one that a waiting job would take over from.
  bool IsNextToGiveWay(const LiveJob& live, const QueueEntry& waiting) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  static wan::v1::Event NewEvent(int attempt);

  // Which jobs of the queue may begin now: by model, and by principal. For the holder of the lock.
  JobQueue::Accepts RunnableIn(int group) const;
  JobQueue::Accepts MayRun() const;

  // Puts the job into the queue and returns the event that tells its position.
  wan::v1::Event Enqueue(const LiveJob& live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  wan::v1::Event QueuedEvent(const wan::v1::Job& job, const QueueSum& before) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Appends a Queued event to each of the first `reach` jobs from `from` on whose position changed
  // enough to be worth one. Takes the lock for some jobs at a time. If `estimate` is true, it also
  // estimates them anew.
  void AnnouncePositions(JobQueue::Place from, bool estimate,
                         int reach = std::numeric_limits<int>::max()) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns how many of the jobs behind one that was added or removed should look at their
  // positions. All need not: the position of a job far back is told when it has halved or doubled,
  // for which it takes many changes. The job at position p looks after every p/4 changes, so that
  // a change costs the logarithm of the queue's length on average; all look when a job begins.
  int ReachOfChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What the work is estimated to take, once a step of the model was observed.
  std::optional<absl::Duration> Estimate(const std::string& model, const PlannedWork* work) const;
  // The same for those who only want to know: before that it follows from an assumed rate.
  std::optional<absl::Duration> Expect(const std::string& model, const PlannedWork* work) const;
  // Estimates the time until a job begins behind the running ones and those summed up in `before`.
  std::optional<absl::Duration> TimeUntil(const QueueSum& before) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // OK if the owner's quota has room for the jobs.
  absl::Status CheckQuota(const std::vector<NewJob>& jobs) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What each group does, and when its job will end, for the statistics.
  void AddGroups(JobStats& stats) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The time until the end of the running job; nothing while that is unknown.
  std::optional<absl::Duration> TimeLeft(const LiveJob& live) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a switch from the running job to one of `model` costs; nothing while that is unknown.
  std::optional<absl::Duration> SwitchCost(const LiveJob& live, const std::string& model) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How long the texts and the image of a job are encoded, as far as that is known.
  absl::Duration TimeBeforeSteps(const LiveJob& live) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The work of the running job that its next attempt does again if this one stops now: at most
  // kWorkWorthKeeping less than it is, while the job is being decoded.
  absl::Duration ComputedAgain(const LiveJob& live) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call with the first progress of an attempt.
  void NoteHeadStart(LiveJob& live, const std::vector<wan::v1::Event>& events,
                     const wan::v1::StepProgress& progress) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration RetryDelay() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Rebuilds the trace of the job's latest attempt from its stored events, as far as they can be
  // read.
  AttemptTrace StoredTrace(const wan::v1::Job& job) const;
  // Requeues a job that lost its attempt, or ends it if it may lose no more.
  void RequeueLost(LiveJob& live, std::string_view reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts a RUNNING job back into the queue.
  void Requeue(LiveJob& live, RequeueCause cause, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts a running job that was asked to go back into the queue there.
  void RequeueAsAsked(LiveJob& live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The job has completed: learns from how long it took.
  void LearnFrom(const LiveJob& live, absl::Duration taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishCancelled(LiveJob& live, StopCause cause, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a job with its last event.
  void Finish(LiveJob& live, wan::v1::JobState state, const absl::Status& error,
              wan::v1::Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetState(LiveJob& live, wan::v1::JobState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The job as callers see it, without what is computed for each of them.
  static wan::v1::Job ShownOf(const LiveJob& live);
  wan::v1::Job View(const LiveJob& live) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds when the job will end, as far as that can be told. `before`: of a queued job, the others
  // before it.
  void AddEta(const LiveJob& live, const std::optional<QueueSum>& before, wan::v1::Job& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Holds the lock, and notes how many entries of the queue were looked at meanwhile.
  class ABSL_SCOPED_LOCKABLE Lock {
   public:
    explicit Lock(const JobTable& table) ABSL_EXCLUSIVE_LOCK_FUNCTION(table.mutex_);
    ~Lock() ABSL_UNLOCK_FUNCTION();

   private:
    const JobTable& table_;
  };

  const Parts parts_;
  Clock& steady_;  // what lasts is measured with it; parts_.clock stamps what callers see
  mutable absl::Mutex mutex_;
  mutable LiveJobs live_ ABSL_GUARDED_BY(mutex_);
  UsageAccount account_ ABSL_GUARDED_BY(mutex_);
  JobQueue queue_ ABSL_GUARDED_BY(mutex_);
  // What queue_.looked_at() was when the lock was taken.
  mutable int64_t looked_at_before_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable int64_t most_entries_at_once_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_age_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;            // jobs that were added or removed
  std::vector<GroupState> groups_ ABSL_GUARDED_BY(mutex_);  // by number
  // What TakeUnplanned returns, by model.
  std::map<std::string, std::vector<std::string>> unplanned_ ABSL_GUARDED_BY(mutex_);
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);  // OK: jobs are accepted and begun
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<wan::v1::JobState, int64_t> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
