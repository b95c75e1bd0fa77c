// Keeps account of the attempts that a job lost: those that took the server's process or its device
// with them.
//
// The account is in the job's row. Each attempt gets an entry in Job.lost_attempts before the
// engine is called. Every orderly end removes the entry: the attempt completes, fails or is
// cancelled, or the server is told to stop. An entry that is still open when a server starts
// therefore belongs to an attempt that was lost.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Follows the events of one attempt and remembers in which stage and when it last reported. Not
// thread-safe.
class AttemptTrace {
 public:
  void Add(const wan::v1::Event& event);

  // Returns the innermost stage that has not ended well, or else the latest one; empty before the
  // first. Total_Execution does not count, because it encloses all others.
  const std::string& stage() const;
  // The time of the latest event; the infinite past before the first.
  absl::Time heard() const { return heard_; }

 private:
  std::vector<std::string> open_;
  std::string latest_;
  absl::Time heard_ = absl::InfinitePast();
};

// Adds the entry of the attempt that is about to start; takes its number and time from
// `job.attempt` and `job.start_time`.
void EnterAttempt(wan::v1::Job& job);

// Removes the entry of an attempt that ended in an orderly way; does nothing if there is none.
void ClearAttempt(wan::v1::Job& job);

// Whether the job's latest attempt has an entry without an end.
bool HasOpenAttempt(const wan::v1::Job& job);

// Completes the open entry with the last known stage and time, and with the steps that the job's
// savepoint has now. The job must have an open entry.
void LoseAttempt(wan::v1::Job& job, const AttemptTrace& trace, int steps_kept);

// Returns how many of the latest lost attempts have kept no further step: those since the one whose
// savepoint had the most steps first, that one included. A job that is lost at the same place again
// and again has ever more of them; one that gets further with each attempt has one.
int LostWithoutProgress(const wan::v1::Job& job);

// Returns INTERNAL with the reason ATTEMPTS_EXHAUSTED. The message says of the lost attempts
// without progress when, and in which stage, each last reported.
absl::Status AttemptsExhaustedError(const wan::v1::Job& job);

}  // namespace wan::server
