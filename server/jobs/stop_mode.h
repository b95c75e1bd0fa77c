// The ways to end running jobs when the server stops or is drained. Queued jobs always stay queued.
#pragma once

namespace wan::server {

enum class StopMode {
  kAuto,  // the job goes on if that costs less than resuming it later (server/jobs/stop_decision.h)
  kFinish,   // the job may go on for the grace time; then it is stopped and requeued
  kRequeue,  // the job stops at once (within 0.5 s on a GPU) and is resumed after the restart
};

}  // namespace wan::server
