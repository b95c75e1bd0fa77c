// Which attempts of a job were lost: they took the server's process, or its device, with them.
//
// What tells them from others is in the job's row. An attempt is entered in Job.lost_attempts when
// it begins, before the engine is called. Whatever ends it in an orderly way takes the entry out
// again: its own end, and a server that is told to stop. So an entry that is still open when a
// server starts is of an attempt that nobody ended.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Follows the events of one attempt, to tell where it stood when it was last heard of. Not
// thread-safe.
class AttemptTrace {
 public:
  void Add(const wan::v1::Event& event);

  // The innermost stage that has not ended well, else the latest one; empty before the first.
  // Total_Execution, which is around all of them, does not count.
  const std::string& stage() const;
  // The time of the latest event; the infinite past before the first.
  absl::Time heard() const { return heard_; }

 private:
  std::vector<std::string> open_;
  std::string latest_;
  absl::Time heard_ = absl::InfinitePast();
};

// Enters the attempt that `job.attempt` and `job.start_time` tell of as one that may be lost.
void EnterAttempt(wan::v1::Job& job);

// Takes out the entry of an attempt that ends in an orderly way; nothing happens if there is none.
void ClearAttempt(wan::v1::Job& job);

// Whether the job's latest attempt is entered and has not ended.
bool HasOpenAttempt(const wan::v1::Job& job);

// Completes the open entry with where the attempt stood; the job must have one.
void LoseAttempt(wan::v1::Job& job, const AttemptTrace& trace);

// INTERNAL (ATTEMPTS_EXHAUSTED), which says of every lost attempt when and in which stage it ended.
absl::Status AttemptsExhaustedError(const wan::v1::Job& job);

}  // namespace wan::server
