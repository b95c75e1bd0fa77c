// What must survive: jobs, their events, reports and images.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// A job as it is kept. Its request has no image; `queue_position` and `progress` are not kept, and
// `last_sequence` is filled in on reading.
struct StoredJob {
  wan::v1::Job job;
  // The job ends when its caller goes away (Generate).
  bool tied_to_caller = false;
  // SHA-256 of the request as it was asked for, image included: what a reused request_id is
  // compared with.
  std::string request_digest;
};

// What changes together about one job.
struct JobChange {
  std::string job;                           // "jobs/ID"
  std::optional<wan::v1::Job> row;           // replaces the job
  std::vector<wan::v1::Event> events;        // appended; sequences greater than any stored one
  std::optional<wan::v1::JobReport> report;  // replaces the report
};

struct JobQuery {
  std::vector<wan::v1::JobState> states;  // each once; empty: all
  int limit = 50;                         // a page of very large jobs may have fewer
  int64_t before = 0;                     // JobPage::next of the page before; 0: from the newest
};

struct JobPage {
  std::vector<StoredJob> jobs;  // newest first
  int64_t next = 0;             // 0: this was the last page
};

// Thread-safe. A call that changes something has done all of it, durably, when it returns OK, and
// none of it when it returns an error; it must outlive a kill -9 and a power cut.
//
// Statuses: NOT_FOUND for unknown jobs; DATA_LOSS (JOB_DAMAGED) for a job whose row cannot be read,
// which List and Unfinished leave out; RESOURCE_EXHAUSTED, UNAVAILABLE or PERMISSION_DENIED with
// the reason STORAGE_UNAVAILABLE for a disk that is full, fails, or takes no writes; INTERNAL for
// anything else the storage refuses.
//
// A call holds the store's lock for a bounded amount of work, however many jobs there are.
class JobStore {
 public:
  virtual ~JobStore() = default;

  // Adds a job, its image (empty: none) and its first events. ALREADY_EXISTS if the name or the
  // request_id (unless empty) is taken.
  virtual absl::Status Insert(const StoredJob& job, const std::string& image,
                              std::span<const wan::v1::Event> events) = 0;

  // Applies changes in their order, all or none of them. The image of a job whose new state is
  // final is dropped.
  virtual absl::Status Apply(std::span<const JobChange> changes) = 0;

  virtual absl::StatusOr<StoredJob> Get(std::string_view job) = 0;
  virtual absl::StatusOr<StoredJob> FindByRequestId(std::string_view request_id) = 0;
  virtual absl::StatusOr<JobPage> List(const JobQuery& query) = 0;
  // QUEUED and RUNNING jobs, oldest first.
  virtual absl::StatusOr<std::vector<StoredJob>> Unfinished() = 0;

  // OK if the storage takes writes now. Changes nothing.
  virtual absl::Status CheckWritable() = 0;

  // Events with a sequence greater than `after`, in order, at most `limit`. Empty for an unknown
  // job; DATA_LOSS if one of them is missing or cannot be read.
  virtual absl::StatusOr<std::vector<wan::v1::Event>> Events(std::string_view job, int64_t after,
                                                             int limit) = 0;
  // NOT_FOUND if there is none.
  virtual absl::StatusOr<wan::v1::JobReport> Report(std::string_view job) = 0;
  // Empty if the job has none.
  virtual absl::StatusOr<std::string> Image(std::string_view job) = 0;
};

// COMPLETED, FAILED and CANCELLED.
bool IsFinal(wan::v1::JobState state);

}  // namespace wan::server
