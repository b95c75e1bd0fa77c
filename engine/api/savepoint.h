// The savepoints that a generation leaves while denoising, from which another attempt can continue.
//
// A savepoint is the solver's state between two steps: the latents and those outputs of earlier
// steps that a multistep solver still reads. No other state is needed, because noise is drawn only
// at the start. An attempt that continues from a savepoint gives the same bits as an uninterrupted
// one. Free of LibTorch.
#pragma once

#include <optional>
#include <string>

namespace wan {

struct Savepoint {
  int steps_done = 0;  // 1 to the number of steps; if all, only decoding is left
  // The state, in the engine's own format. The engine detects incomplete bytes but not damaged
  // ones, so store a digest with them.
  std::string bytes;
};

// Stores the savepoints of one job. Engine::Generate calls it on its thread and waits for it, so
// Keep must return before the bytes are on disk. Implementations must not throw.
class SavepointKeeper {
 public:
  virtual ~SavepointKeeper() = default;

  // Returns an earlier attempt's latest savepoint if request, model, libraries and kind of device
  // are the same. Called once, before the first step.
  virtual std::optional<Savepoint> Load() = 0;

  // Returns whether to keep a savepoint now. Called after every step; `last_step` means that only
  // decoding is left.
  virtual bool IsDue(bool last_step) = 0;

  // Returns whether the job will run again; a cancelled job will not. Called after a stop request
  // if a step has ended since the last savepoint.
  virtual bool WantsWhenStopped() = 0;

  // Stores the savepoint, which replaces the earlier one once it is safe on disk.
  virtual void Keep(Savepoint savepoint) = 0;

  // Called if the savepoint from Load cannot be used, with the reason. The job then starts from the
  // beginning.
  virtual void Refuse(const std::string& reason) = 0;
};

}  // namespace wan
