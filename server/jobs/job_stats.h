// Figures about the jobs of a server, for metrics and ServerInfo.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

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
  int queued_total = 0;
  int running_total = 0;
  int queue_capacity = 0;
  // The most entries of the queue that any call has looked at while it held the lock once.
  int64_t most_entries_at_once = 0;
  // Whether the server is being drained, or has been: it accepts no job and begins none.
  bool draining = false;
  // False while the data folder refuses writes: no job is accepted or begun.
  bool storage_writable = true;
  // Of the disk of the data folder; nothing while that is not known.
  std::optional<uint64_t> disk_free_bytes;
  // What the accepted jobs still need of it, and what disk_reserve keeps free.
  uint64_t disk_reserved_bytes = 0;
};

}  // namespace wan::server
