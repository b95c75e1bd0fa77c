// Savepoints, which a generation leaves while it denoises, and from which another attempt can
// continue.
//
// A savepoint is the solver's state between two steps: the latents, and those outputs of earlier
// steps that a multistep solver will still read. No other state is needed, because all noise
// follows from the seed and the number of the step in the plan. An attempt that continues from a
// savepoint gives the same bits as an attempt without interruption. This header does not need
// LibTorch.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan {

struct Savepoint {
  int steps_done = 0;  // from 1 to the number of steps; if all steps are done, only decoding is
                       // left
  // The state in a format that only the engine knows. The engine notices missing bytes but not
  // wrong bytes, so store a digest with the bytes.
  std::string bytes;
};

// Stores the savepoints of one job. Engine::Generate calls the functions on its own thread and
// waits for them, so Keep must return before the bytes are on disk. Implementations must not throw.
class SavepointKeeper {
 public:
  virtual ~SavepointKeeper() = default;

  // Returns the latest savepoint of an earlier attempt, if request, model, libraries and kind of
  // device are the same as now. The engine calls Load once, before the first step. After an error
  // the generation fails with that error.
  virtual absl::StatusOr<std::optional<Savepoint>> Load() = 0;

  // Returns whether the engine should make a savepoint now. The engine calls IsDue after every
  // step; `last_step` means that only decoding is left.
  virtual bool IsDue(bool last_step) = 0;

  // Returns whether the job will run again. A cancelled job will not. The engine asks after a stop
  // request, if a step has ended since the last savepoint.
  virtual bool WantsWhenStopped() = 0;

  // Stores the savepoint. The new savepoint replaces the earlier one once it is safe on disk.
  virtual void Keep(Savepoint savepoint) = 0;

  // Reports why the engine cannot use the savepoint from Load. After OK the job starts with its
  // first step; after an error the generation fails with that error.
  virtual absl::Status Refuse(const std::string& reason) = 0;
};

}  // namespace wan
