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
  // In the states QUEUED and RUNNING: the jobs that have this state now. In final states: the jobs
  // that ended since the service was opened.
  std::map<wan::v1::JobState, int64_t> jobs_by_state;
  // Number of waiting jobs of each model.
  std::map<std::string, int> queued;
  // Total estimated run time, in seconds, of those waiting jobs of each model that have an
  // estimate.
  std::map<std::string, double> queued_seconds;
  // Number of waiting jobs of each model that have no estimate.
  std::map<std::string, int> unestimated;
  // Figures about a device group.
  struct Group {
    std::string device;    // for example "cuda:0"
    std::string job;       // the job that the group runs, "jobs/ID"; empty: none
    absl::Status problem;  // why the group stopped serving; OK while it serves
    // Estimated seconds until the group's job ends, median and 90th percentile; nothing while the
    // group runs no job or the time is unknown.
    std::optional<double> left_p50;
    std::optional<double> left_p90;
  };
  std::vector<Group> groups;  // the index is the group's number
  int queued_total = 0;
  int running_total = 0;
  int queue_capacity = 0;
  // The largest number of queue entries that a call has looked at without releasing the lock.
  int64_t most_entries_at_once = 0;
  // Whether the server is draining, drained or stopping, and so accepts and begins no jobs.
  bool draining = false;
  // False while the data folder refuses writes: then no job is accepted or begun.
  bool storage_writable = true;
  // Free bytes of the disk with the data folder; nullopt while unknown.
  std::optional<uint64_t> disk_free_bytes;
  // Number of callers that follow a job's events.
  int job_watchers = 0;
  // The number of free bytes that are reserved: the bytes that accepted jobs still need, plus
  // disk_reserve.
  uint64_t disk_reserved_bytes = 0;
};

// Figures about the data folder.
struct StorageStats {
  std::optional<uint64_t>
      artifact_bytes;  // bytes of the files of ended jobs; nothing if the store cannot be read
  uint64_t database_bytes = 0;  // bytes of the job database and its write-ahead log
};

}  // namespace wan::server
