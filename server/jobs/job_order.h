// Decides which job runs next and in which device group, what each principal may use, and which
// running job gives way to a waiting one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "server/conversion/job_inputs.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/job_outlook.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/live_jobs.h"
#include "server/jobs/model_table.h"
#include "server/quota/quotas.h"
#include "server/quota/usage_account.h"

namespace wan::server {

// A job that the server is about to accept.
struct NewJob {
  StoredJob stored;
  JobInputs inputs;
  std::shared_ptr<const PlannedWork> work;
};

// Thread-safe. Changes only the queue; JobStates changes the states of the jobs.
class JobOrder {
 public:
  // All members must outlive the object.
  struct Parts {
    LiveJobs& live;
    const JobOutlook& outlook;
    const DeviceGroups& groups;
    const ModelTable& models;
    const Quotas& quotas;
  };
  explicit JobOrder(Parts parts) : parts_(parts), live_(parts.live) {}

  // Returns the model that the group should load for waiting jobs: the model of the first waiting
  // job that the group could begin after the load. Considers only models that no free group has.
  // Returns nothing if the group can begin a job without loading, or if there is no such job.
  std::optional<std::string> ModelToLoad(int group) ABSL_LOCKS_EXCLUDED(live_.mutex);
  // Returns the use of the principal, without the stored bytes.
  wan::v1::Usage UsageOf(const std::string& owner) const ABSL_LOCKS_EXCLUDED(live_.mutex);
  // Removes from the list of unplanned jobs, and returns, at most `limit` jobs of the model. (An
  // earlier process accepted these jobs.) The caller plans the jobs and calls SetWork for each.
  std::vector<wan::v1::Job> TakeUnplanned(const std::string& model, size_t limit)
      ABSL_LOCKS_EXCLUDED(live_.mutex);
  // Sets the job's planned work and updates the job's estimate. Does nothing if the job has ended.
  void SetWork(const std::string& job, std::shared_ptr<const PlannedWork> work)
      ABSL_LOCKS_EXCLUDED(live_.mutex);

  // Returns OK if the owner's quota has room for the jobs.
  absl::Status CheckQuota(const std::vector<NewJob>& jobs) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  absl::Status CheckQuota(const std::string& owner, const UsageAccount::Demand& demand) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Puts the job into the queue and returns the Queued event with its position.
  wan::v1::Event Enqueue(const LiveJob& live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Adds a job to the list for TakeUnplanned.
  void NoteUnplanned(const wan::v1::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Removes the group's next job from the queue and returns it: the first job that the group can
  // run. Returns nullopt if the group can run no waiting job.
  //
  // Warm-model rule: with N groups, if another group last ran the first job's model, this group may
  // take one of the next N-1 jobs of equal priority that needs the model that this group ran last.
  // A job is passed over at most N-1 times.
  std::optional<QueueEntry> TakeFor(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Returns the waiting job that should preempt `live`, a running job whose step has just ended;
  // nothing if `live` goes on. The waiting job's priority must be higher by `gap` or more
  // (server/jobs/preemption.h). The running job of the lowest priority gives way. Each waiting job
  // preempts at most one job, and none while a free group can run the waiting job.
  std::optional<std::string> SuccessorOf(const LiveJob& live, int gap)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);

 private:
  // Whether another group ran the model last, and can still run it.
  bool RanElsewhere(int group, const std::string& model) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Whether `live` is the running job that must give way if `waiting` preempts one.
  bool IsNextToGiveWay(const LiveJob& live, const QueueEntry& waiting) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // RunnableIn returns a function that accepts the models that are ready in the group; MayRun
  // returns one that accepts the principals whose quota allows another running job. Call the
  // returned functions only with the lock held.
  JobQueue::Accepts RunnableIn(int group) const;
  JobQueue::Accepts MayRun() const;

  const Parts parts_;
  LiveJobs& live_;
  // The jobs that TakeUnplanned returns, by model.
  std::map<std::string, std::vector<std::string>> unplanned_ ABSL_GUARDED_BY(live_.mutex);
};

}  // namespace wan::server
