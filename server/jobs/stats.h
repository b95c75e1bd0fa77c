// How many jobs there are.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "wan/v1/generation.pb.h"

namespace wan::server {

struct JobStats {
  // Now for QUEUED and RUNNING; since the service was opened for final states.
  std::map<wan::v1::JobState, int64_t> jobs_by_state;
  // Jobs that wait, by model.
  std::map<std::string, int> queued;
  // Estimated seconds of execution that wait, by model, of the jobs that can be estimated.
  std::map<std::string, double> queued_seconds;
  int queued_total = 0;
  int running_total = 0;
  int queue_capacity = 0;
  // The most entries of the queue that any call has looked at while it held the lock once.
  int64_t most_entries_at_once = 0;
  // False while the data folder refuses writes: no job is accepted or begun.
  bool storage_writable = true;
};

}  // namespace wan::server
