// The exit codes of wanctl, explained in docs/use/wanctl.md. Programs rely on the numbers.
#pragma once

#include "absl/status/status.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

enum ExitCode : int {
  kExitDone = 0,
  // The command line, or a file that it names, is wrong; no server was called.
  kExitUsage = 2,
  // The server refused the request before anything ran.
  kExitRejected = 3,
  // The job ran and failed, or a result could not be written.
  kExitFailed = 4,
  // A person, a caller or a deadline has ended the job or the command.
  kExitCancelled = 5,
  // The server could not be reached, or the connection broke.
  kExitUnreachable = 6,
  // A replay has made a video that differs from the original one.
  kExitDifferent = 7,
};

// Returns the exit code for the outcome of a call. `accepted` says whether the server had created
// the job of the call; then an error is a failure, not a refusal.
ExitCode ExitCodeOf(const absl::Status& status, bool accepted = false);

// Returns the exit code for the event that ended a job.
ExitCode ExitCodeOf(const wan::v1::Event& end);

}  // namespace wan::client
