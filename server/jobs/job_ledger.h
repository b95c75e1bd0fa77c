// Writes the transitions of jobs that have not ended to the store.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/store/job_store.h"
#include "server/watch/event_log.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// One function for each transition, which is stored in one transaction: the job's row, its events
// and its report. Nothing else writes to a job that has not ended, so that a store which several
// servers share has one place at which to refuse a transition. Here the process is the only one,
// and the disk alone can refuse: EventLog keeps such a change and writes it again.
//
// Thread-safe. But for Accept, a call returns at once, and its change follows those of earlier
// calls for the same job; EventLog::Flush waits for the disk.
class JobLedger {
 public:
  // Both must outlive the ledger.
  JobLedger(JobStore& store, EventLog& log) : store_(store), log_(log) {}

  // none -> QUEUED, for all jobs or for none. `done` is called on the store's thread, or on this
  // one before the call returns, and must not block.
  void Accept(std::shared_ptr<const std::vector<JobAddition>> additions, JobStore::Done done);
  // The process goes on with a job that an earlier one has accepted. Stores nothing.
  void TakeOver(const wan::v1::Job& job);
  // QUEUED -> RUNNING.
  void Claim(const wan::v1::Job& job);
  // RUNNING: the attempt has come further.
  void Append(const std::string& job, std::vector<wan::v1::Event> events);
  // RUNNING: these are the files that the attempt's model was read from.
  void NoteFiles(const std::string& job, std::vector<JobFile> files);
  // RUNNING: the job's row has another entry for the attempt, or none (server/jobs/attempts.h).
  void Enter(const wan::v1::Job& job);
  // RUNNING -> QUEUED.
  void Release(const wan::v1::Job& job, std::vector<wan::v1::Event> events,
               std::optional<wan::v1::JobReport> report);
  // RUNNING, to be CANCELLED.
  void AskToStop(const wan::v1::Job& job);
  // QUEUED or RUNNING, with another priority, deadline or other labels.
  void Change(const wan::v1::Job& job, std::vector<wan::v1::Event> events);
  // QUEUED, at another position.
  void Move(const std::string& job, wan::v1::Event queued);
  // Any state -> COMPLETED, FAILED or CANCELLED. `stored` is called on the log's thread with no
  // lock held, once the store has the end and before watchers see it.
  void Finish(const wan::v1::Job& job, wan::v1::Event last,
              std::optional<wan::v1::JobReport> report, std::function<void()> stored);

  // Shows watchers a preview, which is not stored.
  void Preview(const std::string& job, wan::v1::Event preview) {
    log_.Broadcast(job, std::move(preview));
  }

  // The newest event that watchers can see: see EventLog::LastSequence.
  int64_t LastSequence(const std::string& job) const { return log_.LastSequence(job); }
  // Waits for the disk: see EventLog::Flush.
  absl::Status Flush() { return log_.Flush(); }

 private:
  JobStore& store_;
  EventLog& log_;
};

}  // namespace wan::server
