// Hands decoded chunks to the sink, and detects chunks with values that are not finite.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/device/finite_check.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// Takes the chunks of one pass in order, on the thread that queues their work. Checks each chunk
// before clamping it to [-1, 1], because clamping would hide infinite values. Whether a chunk is
// finite is known only when the device has computed it. To keep the device busy, the host asks for
// the check's result only after it has queued the next chunk. Exceptions of LibTorch pass through.
class ChunkOutlet {
 public:
  // `has_wider` tells whether a wider precision can take over. If so, a chunk is handed on only
  // once it is known to be finite; meanwhile the device computes the next chunk. If no wider
  // precision can take over, Add hands on each chunk at once, and reports a chunk that is not
  // finite one chunk later. Add drops chunks before `first`, because an earlier pass handed them
  // on. `sink` gets frames as VideoAutoencoder::FrameSink says; it must outlive the object.
  ChunkOutlet(bool has_wider, int64_t first, const VideoAutoencoder::FrameSink& sink);

  // Takes the next chunk, floating-point [3, n, H, W], whose work is queued on its device's current
  // stream. Returns true to go on, false if a wider precision must take over, the sink's error, or
  // DATA_LOSS (IsNotFinite). Do not call Add again after it returned anything but true.
  absl::StatusOr<bool> Add(at::Tensor decoded);

  // Hands on the pending chunk. Call Finish after the last chunk, unless the pass was abandoned.
  // Returns the same errors as Add.
  absl::Status Finish();

  // Number of chunks that were handed on or dropped. If a wider precision must take over, this is
  // also the index of the first chunk that is not finite, which was not handed on.
  int64_t reached() const { return reached_; }

 private:
  // The latest chunk; the result of its check is not known yet.
  struct Pending {
    int64_t chunk = 0;
    at::Tensor decoded;  // undefined if the chunk was already handed on
  };

  FiniteCheck& CheckOf(int64_t chunk) { return checks_[static_cast<size_t>(chunk % 2)]; }
  // Waits until the device has computed the chunk. Returns true, false or an error, as Add does.
  absl::StatusOr<bool> Judge(Pending pending);
  absl::Status HandOn(at::Tensor decoded);

  const bool has_wider_;
  const int64_t first_;
  const VideoAutoencoder::FrameSink& sink_;
  std::array<FiniteCheck, 2> checks_;  // checks of the pending chunk and of the next one
  std::optional<Pending> pending_;
  int64_t added_ = 0;
  int64_t reached_ = 0;
};

}  // namespace wan
