// Decides which job runs next and where, what each principal may use, and which job gives way.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/job_outlook.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/live_jobs.h"
#include "server/jobs/model_table.h"
#include "server/quota/quotas.h"

namespace wan::server {

// A job that is to be accepted.
struct NewJob {
  StoredJob stored;
  std::shared_ptr<const std::string> image;  // null: none
  std::shared_ptr<const PlannedWork> work;
};

// Thread-safe. Changes the queue only; JobStates changes the jobs' states.
class JobOrder {
 public:
  // All must outlive the object.
  struct Parts {
    LiveJobs& live;
    const JobOutlook& outlook;
    const DeviceGroups& groups;
    const ModelTable& models;
    const Quotas& quotas;
  };
  explicit JobOrder(Parts parts) : parts_(parts), live_(parts.live) {}

  // Returns the model of the first job that no group can begin now but this one, once it has loaded
  // the model: all that have the model are busy. Nothing if the group can begin a job, or if there
  // is no such job.
  std::optional<std::string> ModelToLoad(int group) ABSL_LOCKS_EXCLUDED(live_.mutex);
  // Returns what the principal uses, without its stored bytes.
  wan::v1::Usage UsageOf(const std::string& owner) const ABSL_LOCKS_EXCLUDED(live_.mutex);
  // Removes and returns at most `limit` of the model's jobs that were taken over from an earlier
  // process and whose work is not known. Plan them, and call SetWork.
  std::vector<wan::v1::Job> TakeUnplanned(const std::string& model, size_t limit)
      ABSL_LOCKS_EXCLUDED(live_.mutex);
  // From now on the job counts with this work. Does nothing if it has ended.
  void SetWork(const std::string& job, std::shared_ptr<const PlannedWork> work)
      ABSL_LOCKS_EXCLUDED(live_.mutex);

  // OK if the owner's quota has room for the jobs.
  absl::Status CheckQuota(const std::vector<NewJob>& jobs) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Puts the job into the queue and returns the event that tells its position.
  wan::v1::Event Enqueue(const LiveJob& live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // The job was taken over, and its work is not known.
  void NoteUnplanned(const wan::v1::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Takes the group's next job from the queue: the first that it can run; nothing if there is none.
  //
  // Warm-model rule: with N groups, if another group last ran the first job's model, this group may
  // take one of the next N-1 jobs of equal priority that needs the model that it ran last itself. A
  // job is passed over at most N-1 times.
  std::optional<QueueEntry> TakeFor(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Returns the waiting job that should take over from a running one, whose step has just ended:
  // its priority is higher by `gap` or more (server/jobs/preemption.h). The running job of the
  // lowest priority gives way, one for each waiting job, and none while a group that can run the
  // waiting job is free. Nothing if the running job goes on.
  std::optional<std::string> SuccessorOf(const LiveJob& live, int gap)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);

 private:
  // Whether another group ran the model last and can run it again.
  bool RanElsewhere(int group, const std::string& model) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Whether the running job is the one that a waiting job would take over from.
  bool IsNextToGiveWay(const LiveJob& live, const QueueEntry& waiting) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Say which jobs of the queue may begin now, by model and by principal. To be called with the
  // lock held.
  JobQueue::Accepts RunnableIn(int group) const;
  JobQueue::Accepts MayRun() const;

  const Parts parts_;
  LiveJobs& live_;
  // The jobs that TakeUnplanned returns, by model.
  std::map<std::string, std::vector<std::string>> unplanned_ ABSL_GUARDED_BY(live_.mutex);
};

}  // namespace wan::server
