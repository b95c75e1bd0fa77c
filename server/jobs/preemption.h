// Decides whether a running job gives way to a waiting one.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace wan::server {

// Facts about a running job at the end of a step, and about the first waiting job that could run in
// its place.
struct PreemptionCase {
  int running_priority = 0;
  int waiting_priority = 0;
  // Time until the running job's end; nullopt while unknown.
  std::optional<absl::Duration> left;
  // Time of the work that the running job repeats when it is resumed, plus the time to switch
  // models; nullopt while unknown.
  std::optional<absl::Duration> cost;
};

// Returns whether the waiting job may take over. The waiting job's priority must be higher by `gap`
// or more; 0 turns preemption off. The `cost` must be less than `left`, because the waiting job
// gains at most `left`. Returns false if `left` or `cost` is unknown. A pure function.
//
// Jobs cannot preempt each other in turn: a job gives way only to jobs of higher priority, and only
// after a step of its attempt has ended.
bool PreemptionPays(const PreemptionCase& jobs, int gap);

}  // namespace wan::server
