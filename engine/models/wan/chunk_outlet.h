// Hands decoded chunks on, and finds those that a precision's range did not suffice for.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// Takes the chunks of one pass in order, as the decoder returns them, on the thread that queues
// them. Where the frames have to be checked, a chunk is handed on while the next one is computed:
// the host learns whether a chunk is finite only when the device has computed it, and waiting for
// that before the next chunk is queued would leave the device without work. Exceptions of LibTorch
// pass through.
class ChunkOutlet {
 public:
  // `checks`: whether frames may be infinite or no number. Chunks before `first` are dropped,
  // because an earlier pass has handed them on. `sink` gets frames as VideoAutoencoder::FrameSink
  // says; it must outlive the object.
  ChunkOutlet(bool checks, int64_t first, const VideoAutoencoder::FrameSink& sink);
  ChunkOutlet(const ChunkOutlet&) = delete;
  ChunkOutlet& operator=(const ChunkOutlet&) = delete;
  // Hands nothing on. Waits for the device where it still writes into this object's memory.
  ~ChunkOutlet();

  // Takes the next chunk, floating-point [3, n, H, W], whose work is queued on the current stream
  // of its device. Returns whether the pass goes on, which it does not once a chunk was not finite,
  // or the error of the sink. Call it no more after either.
  absl::StatusOr<bool> Add(at::Tensor decoded);

  // Hands on what is left. Call it behind the last chunk, unless the pass was given up.
  absl::Status Finish();

  // The number of chunks that were handed on or dropped. Where a chunk was not finite, that is its
  // index: neither it nor a later one was handed on.
  int64_t reached() const { return reached_; }

 private:
  class Check;
  struct Pending {
    at::Tensor decoded;
    Check* check = nullptr;  // one of `checks_`
  };

  // Returns false if the chunk is not finite. Waits for the device where it has not computed it.
  absl::StatusOr<bool> HandOnChecked(Pending pending);
  absl::Status HandOn(at::Tensor decoded);

  const int64_t first_;
  const VideoAutoencoder::FrameSink& sink_;
  // One for the chunk that is pending and one for the next; empty where nothing is checked.
  std::array<std::unique_ptr<Check>, 2> checks_;
  std::optional<Pending> pending_;
  int64_t added_ = 0;
  int64_t reached_ = 0;
};

}  // namespace wan
