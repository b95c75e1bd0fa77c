// Makes receipts: the inputs from which a job's video was made.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/model_file.h"
#include "server/jobs/job_ledger.h"
#include "server/store/file_digests.h"
#include "server/store/job_store.h"
#include "server/watch/event_log.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns the store's rows for files of a job's model, with the digests that are known.
std::vector<JobFile> JobFilesOf(std::span<const ModelFile> files, const FileDigests& digests);

// Sets the digests that have become known. Returns whether all of them are known.
bool AddKnownDigests(const FileDigests& digests, std::vector<JobFile>& files);

// Returns a job's receipt; `files` are the model's files in the job's latest attempt. These files
// are right even if the latest attempt continued a savepoint, because an attempt continues a
// savepoint only if files and provenance have not changed.
wan::v1::Receipt MakeReceipt(const wan::v1::Job& job, std::vector<JobFile> files,
                             const FileDigests& digests);

// Stores the files of jobs, and their digests as soon as they are known, so that a receipt needs
// neither the files nor this machine. Thread-safe.
class ReceiptFiles {
 public:
  // All arguments must outlive the object. No call of Complete may begin after the log's end.
  ReceiptFiles(JobStore& store, EventLog& log, JobLedger& ledger, const FileDigests& digests)
      : store_(store), log_(log), ledger_(ledger), digests_(digests) {}

  // Records the files of the running attempt of the job.
  void Note(const std::string& job, std::span<const ModelFile> files);

  // Stores the files of those jobs whose last digest has become known. Call it when a digest has.
  void Complete();

 private:
  void StoreComplete(const std::string& job);

  // More jobs than end while a large model is hashed. Of further ones a receipt looks the digests
  // up when it is asked for.
  static constexpr size_t kMostIncomplete = 1000;

  JobStore& store_;
  EventLog& log_;
  JobLedger& ledger_;
  const FileDigests& digests_;
  absl::Mutex mutex_;
  // Files whose digests are not all known, by job.
  std::map<std::string, std::vector<JobFile>> incomplete_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
