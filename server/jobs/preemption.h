// Decides whether a running job gives way to a waiting one.
#pragma once

#include <optional>

#include "absl/time/time.h"

namespace wan::server {

// A running job, at the end of one of its steps, and the first of those that wait and can run.
struct PreemptionCase {
  int running_priority = 0;
  int waiting_priority = 0;
  // The time until the running job's end; nothing while that is unknown.
  std::optional<absl::Duration> left;
  // Time of the work that the running job repeats when it goes on, plus the switch of models;
  // nullopt while unknown.
  std::optional<absl::Duration> cost;
};

// Returns whether the waiting job may take over. Its priority must be higher by `gap` or more; 0
// turns preemption off. The switch must take less time than the running job still needs, which is
// all that the waiting job gains. If a time is unknown, returns false. Pure.
//
// There is no ping-pong: a job gives way only to jobs of higher priority, which go first in the
// queue in any case, and never before a step of its attempt has ended.
bool PreemptionPays(const PreemptionCase& jobs, int gap);

}  // namespace wan::server
