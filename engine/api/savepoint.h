// The savepoints that a generation leaves while it denoises, so that another attempt can continue
// there.
//
// A savepoint is the solver's state between two steps: the latents and the outputs of earlier steps
// that a multistep solver still reads. A step needs no other state, because the noise is drawn
// once, at the start. An attempt that continues from a savepoint gives the same bits as one that
// was never interrupted. This header is free of LibTorch.
#pragma once

#include <optional>
#include <string>

namespace wan {

struct Savepoint {
  int steps_done = 0;  // from 1 to the number of steps; with all of them only decoding is left
  // In the engine's own format. The engine refuses incomplete bytes, but cannot detect damaged
  // ones, so store a digest with them.
  std::string bytes;
};

// Keeps the savepoints of one job. The engine calls it on the thread of Engine::Generate and waits
// for it, so Keep must return before the bytes are on the disk. An implementation must not throw.
class SavepointKeeper {
 public:
  virtual ~SavepointKeeper() = default;

  // Returns the latest savepoint of an earlier attempt, if it was made from the same request with
  // the same model, libraries and kind of device. Called once, before the first step.
  virtual std::optional<Savepoint> Load() = 0;

  // Returns whether a savepoint is worth keeping now. Called after every step; `last_step` is true
  // if only decoding is left.
  virtual bool IsDue(bool last_step) = 0;

  // Returns whether the job will run again, which is false for a cancelled job. Called after a stop
  // request if a step has ended since the last savepoint.
  virtual bool WantsWhenStopped() = 0;

  // Stores the savepoint, which replaces the earlier one once it is safe on the disk.
  virtual void Keep(Savepoint savepoint) = 0;

  // Called if the savepoint from Load cannot be used, for the given reason. The job then starts
  // from its beginning.
  virtual void Refuse(const std::string& reason) = 0;
};

}  // namespace wan
