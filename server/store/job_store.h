// Stores the jobs, with their events, reports and input files, which must survive the process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/conversion/job_filter.h"
#include "server/conversion/job_inputs.h"
#include "server/store/webhook_outbox.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// A stored job, without the request's files, `queue_position` and `progress`. Only reading a job
// sets `last_sequence`.
struct StoredJob {
  wan::v1::Job job;
  // Whether the job ends when its caller goes away (Generate).
  bool tied_to_caller = false;
  // SHA-256 of the request as the caller sent it, files included, to tell a retry from a different
  // request with the same request_id.
  std::string request_digest;
};

// A file from which the model of a job's latest attempt was read.
struct JobFile {
  std::string name;  // relative name, as in wan.v1.ModelFile.path
  uint64_t size_bytes = 0;
  std::string digest_key;  // the result of FileDigests::KeyOf
  // SHA-256 of the file in lower-case hex; empty while it is unknown.
  std::string sha256 = {};

  friend bool operator==(const JobFile&, const JobFile&) = default;
};

// Changes of one job that are stored together, in one transaction.
struct JobChange {
  std::string job;                  // the job's name, "jobs/ID"
  std::optional<wan::v1::Job> row;  // if set, replaces the job's row
  // Events to add; their sequences must be greater than any stored one.
  std::vector<wan::v1::Event> events;
  std::optional<wan::v1::JobReport> report;  // if set, replaces the report
  bool labels_changed = false;               // whether `row` has other labels than the job had
  // If set, replaces the list of the model's files.
  std::optional<std::vector<JobFile>> files = std::nullopt;
};

// A job to add, with its input files and the first events.
struct JobAddition {
  StoredJob job;
  JobInputs inputs;
  std::vector<wan::v1::Event> events;
};

// A job's place in a list of jobs.
struct JobPlace {
  int64_t key = 0;     // the value by which the list is ordered first
  int64_t number = 0;  // grows with each job that is added

  friend bool operator==(const JobPlace&, const JobPlace&) = default;
};

// Maximum number of bytes of the rows of a page, because gRPC clients accept messages up to 4 MiB.
inline constexpr size_t kMaxPageBytes = size_t{3} << 20;

struct JobQuery {
  std::optional<std::string> owner;  // owner of the listed jobs; nullopt: all owners
  JobFilter filter;                  // accepts the listed jobs; by default all
  ListOrder order;                   // by default newest first; equal jobs are ordered by number
  int limit = 50;                    // maximum number of jobs of a page
  size_t bytes = kMaxPageBytes;      // the page ends with the job whose row exceeds this many bytes
  // JobPage::next of the previous page; nullopt: begin with the first page.
  std::optional<JobPlace> after;
};

struct JobPage {
  std::vector<StoredJob> jobs;
  size_t bytes = 0;  // bytes of the jobs' rows
  // The place where the next page starts (that page may be empty); nullopt after the last page.
  std::optional<JobPlace> next;
};

// Totals over the ended jobs that have the same state.
struct EndedTotals {
  int64_t jobs = 0;
  int64_t jobs_with_files = 0;
  int64_t file_bytes = 0;   // bytes of the artifacts that have not been removed
  int64_t entry_bytes = 0;  // bytes of rows, events and reports
};

// An ended job and the bytes that it takes.
struct EndedJob {
  std::string name;
  int64_t file_bytes = 0;
  int64_t entry_bytes = 0;
};

// Device time that the removed jobs of a principal have used.
struct PrincipalUse {
  std::string owner;
  absl::Duration held;
  absl::Time until;  // when the last of these jobs ended
};

// Selects ended jobs, the oldest first.
struct EndedQuery {
  wan::v1::JobState state = wan::v1::JOB_STATE_COMPLETED;
  bool with_files = false;  // whether to select only jobs that have files; allowed only with
                            // COMPLETED
  // If set, selects only jobs with an earlier end_time, in the order of end_time. Nullopt: all
  // jobs, in the order in which they ended; this order does not change when the wall clock jumps.
  std::optional<absl::Time> ended_before;
  int skip = 0;  // leaves out this many jobs at the beginning
  int limit = 64;
};

// Thread-safe. When a changing call returns OK, or calls `done` with OK, the whole change is on
// disk and survives a kill -9 and a power cut. After an error nothing has changed.
//
// Calls with `done` do not block while the disk syncs. The store calls `done` once, on one of its
// threads with no lock held, or on the calling thread before the function returns. `done` must not
// block or call a changing function without `done`. Changes are made in the order of the calls.
// Reads never wait for a sync, and return changes that are written but not yet synced.
//
// Errors: NOT_FOUND if the job is unknown; DATA_LOSS (JOB_DAMAGED) if its row cannot be read (but
// List and Unfinished leave such jobs out); RESOURCE_EXHAUSTED, UNAVAILABLE or PERMISSION_DENIED
// with the reason STORAGE_UNAVAILABLE if the disk is full, fails, or takes no writes; INTERNAL
// otherwise.
//
// Every function holds the lock only while it reads or writes a bounded amount.
class JobStore {
 public:
  using Done = std::function<void(const absl::Status&)>;

  virtual ~JobStore() = default;

  // Adds all jobs or none, with their files and first events; `additions` must live until `done`
  // is called. Fails with ALREADY_EXISTS if a name is taken, or if another job of the owner has the
  // same request_id (unless empty); INTERNAL, naming the field, for a text that is not UTF-8.
  virtual void InsertAll(std::span<const JobAddition> additions, Done done) = 0;

  // Deletes an ended job with its events, report and labels; its device seconds still count as its
  // owner's use. Afterwards, calls with the job's name fail with NOT_FOUND (EXPIRED), and another
  // job can use its request_id. Fails with FAILED_PRECONDITION (JOB_NOT_ENDED) if the job has not
  // ended.
  virtual void Remove(std::string_view job, Done done) = 0;

  // Applies the changes in order, all of them or none; `changes` must live until `done` is called.
  // Drops the input files of a job whose new state is final. Replaces bytes that are not UTF-8 by
  // U+FFFD, so that the texts can be read back.
  virtual void Apply(std::span<const JobChange> changes, Done done) = 0;
  absl::Status Apply(std::span<const JobChange> changes);

  virtual absl::StatusOr<StoredJob> Get(std::string_view job) = 0;
  virtual absl::StatusOr<StoredJob> FindByRequestId(std::string_view owner,
                                                    std::string_view request_id) = 0;
  // Returns the next jobs of a query. A page ends after 1,024 visited jobs or `bytes`, so it may
  // have fewer than `limit` jobs, or none, although others follow.
  virtual absl::StatusOr<JobPage> List(const JobQuery& query) = 0;
  // Returns the owner of a job, even if its row is damaged or was removed; fails with NOT_FOUND if
  // nobody knows the owner. Reads only the owner.
  virtual absl::StatusOr<std::string> OwnerOf(std::string_view job) = 0;
  // Returns 32 random bytes with which page tokens are encrypted; they are the same for the life of
  // the database.
  virtual absl::StatusOr<std::string> SecretKey() = 0;
  // Returns the QUEUED and RUNNING jobs, oldest first.
  virtual absl::StatusOr<std::vector<StoredJob>> Unfinished() = 0;

  // Returns the totals of the ended jobs of `owner`, or of all owners, by state.
  virtual absl::StatusOr<std::map<wan::v1::JobState, EndedTotals>> TotalsOfEnded(
      const std::optional<std::string>& owner) = 0;
  virtual absl::StatusOr<std::vector<EndedJob>> OldestEnded(const EndedQuery& query) = 0;

  // Returns the device time of removed jobs that ended at `since` or later. Entries that are more
  // than a day older than the latest one may be missing.
  virtual absl::StatusOr<std::vector<PrincipalUse>> UseOfRemoved(absl::Time since) = 0;

  // Gives a small part of the file's free space back to the file system. Returns whether more free
  // space is left.
  virtual absl::StatusOr<bool> Vacuum() = 0;

  // Returns OK if the disk takes writes now. Changes no data.
  virtual absl::Status CheckWritable() = 0;

  // Returns at most `limit` events with a sequence greater than `after`, in ascending order.
  // Returns no events for an unknown job; fails with DATA_LOSS if one of the events is missing or
  // cannot be read.
  virtual absl::StatusOr<std::vector<wan::v1::Event>> Events(std::string_view job, int64_t after,
                                                             int limit) = 0;
  // Returns the job's report; also fails with NOT_FOUND if the job has no report yet.
  virtual absl::StatusOr<wan::v1::JobReport> Report(std::string_view job) = 0;
  // Returns the files of the job's model, in the order of their names; empty for an unknown job,
  // and before the job has run.
  virtual absl::StatusOr<std::vector<JobFile>> Files(std::string_view job) = 0;
  // Returns the files of the job's request; empty for an unknown job, and after the job has ended.
  virtual absl::StatusOr<JobInputs> Inputs(std::string_view job) = 0;

  // The outbox of webhook reports; Apply adds the reports. The outbox lives as long as the store.
  virtual WebhookOutbox& webhooks() = 0;
};

// Whether a job in this state has ended: COMPLETED, FAILED or CANCELLED.
bool IsFinal(wan::v1::JobState state);

}  // namespace wan::server
