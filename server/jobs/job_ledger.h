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

// One function for each transition stores the job's row, events and report together in one
// transaction. Only JobLedger writes to jobs that have not ended. If the disk refuses a write,
// EventLog keeps the change and writes it again.
//
// Thread-safe. Every call except Accept returns at once. Changes to one job are stored in the order
// of the calls; EventLog::Flush waits for the disk.
class JobLedger {
 public:
  // Both arguments must outlive the ledger.
  JobLedger(JobStore& store, EventLog& log) : store_(store), log_(log) {}

  // Transition from no job to QUEUED, for all jobs or for none. Calls `done` on the store's thread,
  // or on the caller's thread before Accept returns; `done` must not block.
  void Accept(std::shared_ptr<const std::vector<JobAddition>> additions, JobStore::Done done);
  // This process continues a job that an earlier process accepted. Stores nothing.
  void TakeOver(const wan::v1::Job& job);
  // RUNNING: adds events of the attempt.
  void Append(const std::string& job, std::vector<wan::v1::Event> events);
  // State RUNNING: records the files that the attempt's model was read from.
  void NoteFiles(const std::string& job, std::vector<JobFile> files);
  // QUEUED -> RUNNING, or RUNNING: stores the job's row, for example when the attempt's entry was
  // added or removed (server/jobs/attempts.h), or when a cancelled job has got the error with which
  // it will become CANCELLED.
  void Store(const wan::v1::Job& job);
  // Transition from RUNNING to QUEUED.
  void Release(const wan::v1::Job& job, std::vector<wan::v1::Event> events,
               std::optional<wan::v1::JobReport> report);
  // QUEUED or RUNNING: stores a changed priority, deadline or labels.
  void Change(const wan::v1::Job& job, std::vector<wan::v1::Event> events);
  // State QUEUED: stores the event that tells the job's new position.
  void Move(const std::string& job, wan::v1::Event queued);
  // Transition from QUEUED or RUNNING to COMPLETED, FAILED or CANCELLED. `stored` is called on the
  // log's thread with no lock held, once the store has the job's end and before watchers see it.
  void Finish(const wan::v1::Job& job, wan::v1::Event last,
              std::optional<wan::v1::JobReport> report, std::function<void()> stored);

  // Shows watchers a preview, but does not store it.
  void Preview(const std::string& job, wan::v1::Event preview) {
    log_.Broadcast(job, std::move(preview));
  }

  // Returns the number of the newest event that watchers can see (EventLog::LastSequence).
  int64_t LastSequence(const std::string& job) const { return log_.LastSequence(job); }
  // Waits for the disk (EventLog::Flush).
  absl::Status Flush() { return log_.Flush(); }

 private:
  JobStore& store_;
  EventLog& log_;
};

}  // namespace wan::server
