// Stores what must survive the process: jobs, their events, reports and images.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/conversion/job_filter.h"
#include "server/store/webhook_outbox.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// A job as stored: without the request's image, `queue_position` and `progress`. Reading fills in
// `last_sequence`.
struct StoredJob {
  wan::v1::Job job;
  // Whether the job ends when its caller goes away (Generate).
  bool tied_to_caller = false;
  // SHA-256 of the request as sent, image included, to tell a retry from a different request with
  // the same request_id.
  std::string request_digest;
};

// A file from which the model of a job's latest attempt was read.
struct JobFile {
  std::string name;  // as in wan.v1.ModelFile.path
  uint64_t size_bytes = 0;
  std::string digest_key;  // FileDigests::KeyOf

  friend bool operator==(const JobFile&, const JobFile&) = default;
};

// Changes of one job that are stored together.
struct JobChange {
  std::string job;                           // "jobs/ID"
  std::optional<wan::v1::Job> row;           // replaces the job
  std::vector<wan::v1::Event> events;        // appended; sequences greater than any stored one
  std::optional<wan::v1::JobReport> report;  // replaces the report
  bool labels_changed = false;               // whether `row` has other labels than the job had
  std::optional<std::vector<JobFile>> files = std::nullopt;  // replaces the files
};

// A job to add, with its image (null: none) and its first events.
struct JobAddition {
  StoredJob job;
  std::shared_ptr<const std::string> image;
  std::vector<wan::v1::Event> events;
};

// A job's place in an order of jobs.
struct JobPlace {
  int64_t key = 0;     // the value that the order compares first
  int64_t number = 0;  // grows with each added job

  friend bool operator==(const JobPlace&, const JobPlace&) = default;
};

// Most bytes of a page's rows, because gRPC clients accept 4 MiB.
inline constexpr size_t kMaxPageBytes = size_t{3} << 20;

struct JobQuery {
  std::optional<std::string> owner;  // owner of the jobs; nullopt: all owners
  JobFilter filter;                  // default: all jobs
  ListOrder order;                   // default: newest first; ties by number
  int limit = 50;                    // most jobs of a page
  size_t bytes = kMaxPageBytes;      // the page ends with the job that exceeds this
  std::optional<JobPlace> after;     // JobPage::next of the previous page; nullopt: the first page
};

struct JobPage {
  std::vector<StoredJob> jobs;
  size_t bytes = 0;  // bytes of their rows
  // Start of the next page, which may be empty; nullopt after the last page.
  std::optional<JobPlace> next;
};

// Totals of the ended jobs of one state.
struct EndedTotals {
  int64_t jobs = 0;
  int64_t jobs_with_files = 0;
  int64_t file_bytes = 0;   // of the artifacts that have not been removed
  int64_t entry_bytes = 0;  // of rows, events and reports
};

// An ended job and the bytes that it takes.
struct EndedJob {
  std::string name;
  int64_t file_bytes = 0;
  int64_t entry_bytes = 0;
};

// Device time that jobs of a principal have used.
struct PrincipalUse {
  std::string owner;
  absl::Duration held;
  absl::Time until;  // when the last of them ended
};

// Selects ended jobs, oldest first.
struct EndedQuery {
  wan::v1::JobState state = wan::v1::JOB_STATE_COMPLETED;
  bool with_files = false;  // only jobs with files; use it with COMPLETED
  // Only jobs with an earlier end_time, ordered by end_time. Nullopt: all, in the order in which
  // they ended, which jumps of the wall clock do not change.
  std::optional<absl::Time> ended_before;
  int skip = 0;  // number of jobs to leave out at the beginning
  int limit = 64;
};

// Thread-safe. When a changing call returns OK, or calls `done` with OK, the whole change is on
// disk and survives a kill -9 and a power cut. After an error nothing has changed.
//
// Calls with `done` do not block while the disk syncs. `done` is called once, on a thread of the
// store with no lock held, or on the caller's before the call returns. It must not block or call a
// changing method without `done`. Changes are made in the order of the calls. Reads never wait for
// a sync; they see changes that are written but not yet synced.
//
// Errors: NOT_FOUND if the job is unknown; DATA_LOSS (JOB_DAMAGED) if its row cannot be read (List
// and Unfinished leave such jobs out); RESOURCE_EXHAUSTED, UNAVAILABLE or PERMISSION_DENIED with
// the reason STORAGE_UNAVAILABLE if the disk is full, fails, or takes no writes; INTERNAL
// otherwise.
//
// A call holds the lock only for a bounded amount of reading or writing.
class JobStore {
 public:
  using Done = std::function<void(const absl::Status&)>;

  virtual ~JobStore() = default;

  // Adds all jobs or none, with their images and first events, which must live until `done` is
  // called. ALREADY_EXISTS if a name is taken, or if another job of the owner has the same
  // request_id (unless empty); INTERNAL, naming the field, for a text that is not UTF-8.
  virtual void InsertAll(std::span<const JobAddition> additions, Done done) = 0;

  // Deletes an ended job with its events, report and labels; its device seconds still count for the
  // owner. Its name is NOT_FOUND (EXPIRED) from then on, and its request_id can be used again.
  // FAILED_PRECONDITION (JOB_NOT_ENDED) if it has not ended.
  virtual void Remove(std::string_view job, Done done) = 0;

  // Applies the changes in order, all of them or none; they must live until `done` is called. Drops
  // the image of a job whose new state is final. Bytes that are not UTF-8 are replaced by U+FFFD,
  // so that texts can be read back.
  virtual void Apply(std::span<const JobChange> changes, Done done) = 0;
  absl::Status Apply(std::span<const JobChange> changes);

  virtual absl::StatusOr<StoredJob> Get(std::string_view job) = 0;
  virtual absl::StatusOr<StoredJob> FindByRequestId(std::string_view owner,
                                                    std::string_view request_id) = 0;
  // Returns the next jobs of a query. A page ends after 1,024 visited jobs or `bytes`, so it may
  // have fewer than `limit` jobs, or none, although others follow.
  virtual absl::StatusOr<JobPage> List(const JobQuery& query) = 0;
  // Returns the owner of a job, also if it is damaged or was removed; NOT_FOUND if the owner is
  // unknown. Reads only the owner.
  virtual absl::StatusOr<std::string> OwnerOf(std::string_view job) = 0;
  // Returns 32 random bytes, the same for the life of the database, with which page tokens are
  // encrypted.
  virtual absl::StatusOr<std::string> SecretKey() = 0;
  // Returns the QUEUED and RUNNING jobs, oldest first.
  virtual absl::StatusOr<std::vector<StoredJob>> Unfinished() = 0;

  // Returns the totals of the ended jobs of `owner`, or of all owners, by state.
  virtual absl::StatusOr<std::map<wan::v1::JobState, EndedTotals>> TotalsOfEnded(
      const std::optional<std::string>& owner) = 0;
  virtual absl::StatusOr<std::vector<EndedJob>> OldestEnded(const EndedQuery& query) = 0;

  // Returns the device time of removed jobs that ended at `since` or later. Entries more than a day
  // older than the latest one may be missing.
  virtual absl::StatusOr<std::vector<PrincipalUse>> UseOfRemoved(absl::Time since) = 0;

  // Gives a small part of the file's free space back to the file system. Returns whether there is
  // more.
  virtual absl::StatusOr<bool> Vacuum() = 0;

  // Returns OK if the storage takes writes now. Changes no data.
  virtual absl::Status CheckWritable() = 0;

  // Returns at most `limit` events with a sequence greater than `after`, in order. Returns none for
  // an unknown job; DATA_LOSS if one of them is missing or cannot be read.
  virtual absl::StatusOr<std::vector<wan::v1::Event>> Events(std::string_view job, int64_t after,
                                                             int limit) = 0;
  // NOT_FOUND also if the job has no report yet.
  virtual absl::StatusOr<wan::v1::JobReport> Report(std::string_view job) = 0;
  // Returns the files of the job's model, by name; none for an unknown job, and before it has run.
  virtual absl::StatusOr<std::vector<JobFile>> Files(std::string_view job) = 0;
  // Returns the image of the job's request; empty if it has none.
  virtual absl::StatusOr<std::string> Image(std::string_view job) = 0;

  // The outbox of webhook reports, which Apply adds. Lives as long as the store.
  virtual WebhookOutbox& webhooks() = 0;
};

// Whether a job in this state has ended: COMPLETED, FAILED or CANCELLED.
bool IsFinal(wan::v1::JobState state);

}  // namespace wan::server
