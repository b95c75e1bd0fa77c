// Records the attempts that a job has lost because the server's process died or the device was
// lost.
//
// Before the engine is called, each attempt gets an entry in Job.lost_attempts. The entry is
// removed when the attempt completes, fails or is cancelled, and when the server is told to stop.
// An entry that is still open when a server starts therefore belongs to an attempt that was lost.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Follows the events of one attempt, and remembers in which stage and when the attempt last
// reported. Not thread-safe.
class AttemptTrace {
 public:
  void Add(const wan::v1::Event& event);

  // Returns the innermost stage that has not ended without error; if there is none, the latest
  // stage; empty before the first stage. Ignores Total_Execution, because it encloses all other
  // stages.
  const std::string& stage() const;
  // The time of the attempt's latest event; the infinite past before the first.
  absl::Time heard() const { return heard_; }

 private:
  std::vector<std::string> open_;
  std::string latest_;
  absl::Time heard_ = absl::InfinitePast();
};

// Adds an entry for the attempt that is about to start; takes its number and time from
// `job.attempt` and `job.start_time`.
void EnterAttempt(wan::v1::Job& job);

// Removes the entry of an attempt that was not lost; does nothing if there is no entry.
void ClearAttempt(wan::v1::Job& job);

// Whether the job's latest attempt has an entry that is not completed.
bool HasOpenAttempt(const wan::v1::Job& job);

// Completes the attempt's entry with the last stage and time of `trace`, and with the steps that
// the job's savepoint has now. The job must have such an entry.
void LoseAttempt(wan::v1::Job& job, const AttemptTrace& trace, int steps_kept);

// Returns the number of lost attempts without progress: from the first attempt that reached the
// greatest number of steps in the savepoint, to the latest. The result grows if every attempt is
// lost at the same step, and stays 1 if every attempt gets further than the one before.
int LostWithoutProgress(const wan::v1::Job& job);

// Returns INTERNAL with the reason ATTEMPTS_EXHAUSTED. The message lists the lost attempts without
// progress, each with the time and the stage of its last event.
absl::Status AttemptsExhaustedError(const wan::v1::Job& job);

}  // namespace wan::server
