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
  // QUEUED and RUNNING: jobs in that state now. Final states: jobs that ended since the service was
  // opened.
  std::map<wan::v1::JobState, int64_t> jobs_by_state;
  // Number of waiting jobs, by model.
  std::map<std::string, int> queued;
  // Total estimated run time of the waiting jobs that have an estimate, in seconds, by model.
  std::map<std::string, double> queued_seconds;
  // Number of waiting jobs without an estimate, by model.
  std::map<std::string, int> unestimated;
  // A device group.
  struct Group {
    std::string device;    // "cuda:0"
    std::string job;       // the job that it runs, "jobs/ID"; empty: none
    absl::Status problem;  // why it stopped serving; OK while it serves
    // Estimated seconds until its job ends, median and 90th percentile; nothing while it runs no
    // job or the time is unknown.
    std::optional<double> left_p50;
    std::optional<double> left_p90;
  };
  std::vector<Group> groups;  // the index is the group's number
  int queued_total = 0;
  int running_total = 0;
  int queue_capacity = 0;
  // The largest number of queue entries that a call has looked at in one hold of the lock.
  int64_t most_entries_at_once = 0;
  // Whether the server is drained or stopping: it accepts and begins no jobs.
  bool draining = false;
  // False while the data folder refuses writes: no job is accepted or begun.
  bool storage_writable = true;
  // Free bytes of the data folder's disk; nullopt while unknown.
  std::optional<uint64_t> disk_free_bytes;
  // Number of callers that follow a job's events.
  int job_watchers = 0;
  // Bytes of the free ones that accepted jobs still need, plus disk_reserve.
  uint64_t disk_reserved_bytes = 0;
};

// Figures about the data folder.
struct StorageStats {
  std::optional<uint64_t>
      artifact_bytes;           // files of ended jobs, bytes; nothing if the store cannot be read
  uint64_t database_bytes = 0;  // the job database and its write-ahead log
};

}  // namespace wan::server
