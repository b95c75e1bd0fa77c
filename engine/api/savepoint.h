// What a generation hands out while it denoises, so that another attempt can go on from there.
//
// A savepoint is the solver's state between two steps: the latents and the outputs of earlier steps
// that a multistep solver still reads. No other state crosses a step: the noise is drawn once, at
// the start. An attempt that goes on from a savepoint gives the same bits as one that was never
// interrupted. This header is free of LibTorch.
#pragma once

#include <optional>
#include <string>

namespace wan {

struct Savepoint {
  int steps_done = 0;  // 1 to the number of steps; all of them: only decoding is left
  // The engine's own format. It is complete or refused, but nothing in it tells a damaged tensor
  // from a whole one: who keeps it keeps a digest.
  std::string bytes;
};

// Keeps the savepoints of one job. The engine calls it on the thread of Engine::Generate, and waits
// for it: Keep has to return before the bytes are on a disk. It must not throw.
class SavepointKeeper {
 public:
  virtual ~SavepointKeeper() = default;

  // The latest savepoint of an earlier attempt, if it was made from the same request by the same
  // model, libraries and kind of device. Asked once, before the first step.
  virtual std::optional<Savepoint> Load() = 0;

  // Asked after every step: whether it is worth keeping a savepoint now. `last_step`: the next
  // thing is decoding.
  virtual bool IsDue(bool last_step) = 0;

  // Asked after a stop request, if a step has ended that no savepoint holds: whether the job will
  // be taken up again. False for a job that somebody cancelled.
  virtual bool WantsWhenStopped() = 0;

  // Replaces what was kept before, once it is safe.
  virtual void Keep(Savepoint savepoint) = 0;

  // What Load returned is of no use; `reason` says why. The job begins at its start.
  virtual void Refuse(const std::string& reason) = 0;
};

}  // namespace wan
