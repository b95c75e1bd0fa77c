// Hands decoded chunks to the sink, and detects those that are not finite.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/device/finite_check.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// Takes the chunks of one pass in order, as the decoder returns them, on the thread that queues
// them, and looks at each before values beyond [-1, 1] are cut off, which would hide an infinite
// one. The host learns whether a chunk is finite only when the device has computed it, and waiting
// for that before the next chunk is queued would leave the device without work; so the host asks
// when it has queued the next one. Exceptions of LibTorch pass through.
class ChunkOutlet {
 public:
  // `has_wider`: whether a wider precision takes over where a chunk is not finite. Then a chunk is
  // handed on only when it is known to be finite, while the next one is computed. Otherwise chunks
  // are handed on at once, and one that is not finite is an error, which comes one chunk later.
  // Chunks before `first` are dropped, because an earlier pass has handed them on. `sink` gets
  // frames as VideoAutoencoder::FrameSink says; it must outlive the object.
  ChunkOutlet(bool has_wider, int64_t first, const VideoAutoencoder::FrameSink& sink);

  // Takes the next chunk, floating-point [3, n, H, W], whose work is queued on the current stream
  // of its device. Returns whether the pass goes on, which it does not where a wider precision has
  // to take over, or the error of the sink, or DATA_LOSS (IsNotFinite). Call it no more after any
  // of these.
  absl::StatusOr<bool> Add(at::Tensor decoded);

  // Hands on the pending chunk. Call it after the last chunk, unless the pass was given up. Returns
  // the errors of Add.
  absl::Status Finish();

  // The number of chunks that were handed on or dropped. If a wider precision has to take over, it
  // is the index of the chunk that is not finite; neither that chunk nor a later one was handed on.
  int64_t reached() const { return reached_; }

 private:
  // The latest chunk, whose check is pending.
  struct Pending {
    int64_t chunk = 0;
    at::Tensor decoded;  // undefined if it was handed on
  };

  FiniteCheck& CheckOf(int64_t chunk) { return checks_[static_cast<size_t>(chunk % 2)]; }
  // Waits until the device has computed the chunk. Returns as Add does.
  absl::StatusOr<bool> Judge(Pending pending);
  absl::Status HandOn(at::Tensor decoded);

  const bool has_wider_;
  const int64_t first_;
  const VideoAutoencoder::FrameSink& sink_;
  std::array<FiniteCheck, 2> checks_;  // one for the chunk that is pending and one for the next
  std::optional<Pending> pending_;
  int64_t added_ = 0;
  int64_t reached_ = 0;
};

}  // namespace wan
