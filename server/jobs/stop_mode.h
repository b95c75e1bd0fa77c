// The fate of running jobs when the server stops or is drained. Queued jobs always stay queued.
#pragma once

namespace wan::server {

enum class StopMode {
  kAuto,     // it may go on where that costs less than to resume it (server/jobs/stop_decision.h)
  kFinish,   // it may go on for the grace time; after that it is stopped and requeued
  kRequeue,  // it stops at once (within 0.5 s on a GPU) and goes on after the restart
};

}  // namespace wan::server
