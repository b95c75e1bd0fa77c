// How wanctl ends. Programs rely on these numbers.
#pragma once

#include "absl/status/status.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

enum ExitCode : int {
  kExitDone = 0,
  // The command line, or a file that it names, is wrong. No call was made.
  kExitUsage = 2,
  // The server said no before anything ran.
  kExitRejected = 3,
  // It ran and failed, or a result could not be written.
  kExitFailed = 4,
  // By a person, a caller or a deadline.
  kExitCancelled = 5,
  // No connection, or it broke.
  kExitUnreachable = 6,
};

// Of a call that returned an error. `accepted`: a job was running for it already, so that the
// server did not say no.
ExitCode ExitCodeOf(const absl::Status& status, bool accepted = false);

// Of the event that ended a job.
ExitCode ExitCodeOf(const wan::v1::Event& end);

}  // namespace wan::client
