// Figures about the jobs of a server, for metrics and ServerInfo.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

struct JobStats {
  // For QUEUED and RUNNING the jobs now; for final states those that ended since the service was
  // opened.
  std::map<wan::v1::JobState, int64_t> jobs_by_state;
  // The number of waiting jobs, by model.
  std::map<std::string, int> queued;
  // The estimated seconds that the waiting jobs will run, by model. Jobs without an estimate are
  // left out.
  std::map<std::string, double> queued_seconds;
  // The number of jobs that are left out.
  std::map<std::string, int> unestimated;
  // A device group.
  struct Group {
    std::string device;    // "cuda:0"
    std::string job;       // that it runs, "jobs/ID"; empty: none
    absl::Status problem;  // why it has left; OK while it serves
    // The estimated seconds until its job ends: half of such jobs, and nine of ten, take no longer.
    // Nothing while it runs none or that is unknown.
    std::optional<double> left_p50;
    std::optional<double> left_p90;
  };
  std::vector<Group> groups;  // by number
  int queued_total = 0;
  int running_total = 0;
  int queue_capacity = 0;
  // The most entries of the queue that any call has looked at while it held the lock once.
  int64_t most_entries_at_once = 0;
  // Whether the server is drained, or stops: it accepts no job and begins none.
  bool draining = false;
  // False while the data folder refuses writes: no job is accepted or begun.
  bool storage_writable = true;
  // Free bytes of the data folder's disk; nullopt while unknown.
  std::optional<uint64_t> disk_free_bytes;
  // Callers that follow a job's events.
  int job_watchers = 0;
  // Bytes of it that accepted jobs still need, and that disk_reserve keeps free.
  uint64_t disk_reserved_bytes = 0;
};

// Figures about the data folder.
struct StorageStats {
  std::optional<uint64_t>
      artifact_bytes;           // files of ended jobs; nothing if the store cannot be read
  uint64_t database_bytes = 0;  // the job database and its write-ahead log
};

}  // namespace wan::server
