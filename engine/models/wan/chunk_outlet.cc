#include "engine/models/wan/chunk_outlet.h"

#include <ATen/TensorOperators.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"

namespace wan {

ChunkOutlet::ChunkOutlet(bool has_wider, int64_t first, const VideoAutoencoder::FrameSink& sink)
    : has_wider_(has_wider), first_(first), sink_(sink) {}

absl::StatusOr<bool> ChunkOutlet::Add(at::Tensor decoded) {
  const int64_t chunk = added_++;
  if (chunk < first_) {
    reached_ = added_;
    return true;
  }
  CheckOf(chunk).Begin(decoded);
  Pending next{.chunk = chunk, .decoded = {}};
  if (has_wider_) {
    next.decoded = std::move(decoded);
  } else if (absl::Status status = HandOn(std::move(decoded)); !status.ok()) {
    return status;
  }
  std::optional<Pending> before = std::exchange(pending_, std::move(next));
  if (!before.has_value()) return true;
  absl::StatusOr<bool> goes_on = Judge(*std::move(before));
  if (!goes_on.ok() || !*goes_on) pending_.reset();
  return goes_on;
}

absl::Status ChunkOutlet::Finish() {
  std::optional<Pending> last = std::exchange(pending_, std::nullopt);
  return last.has_value() ? Judge(*std::move(last)).status() : absl::OkStatus();
}

absl::StatusOr<bool> ChunkOutlet::Judge(Pending pending) {
  const bool finite = CheckOf(pending.chunk).IsFinite();
  if (!has_wider_) {
    if (finite) return true;
    return NotFiniteError(absl::StrCat("the frames that the autoencoder decoded from latent frame ",
                                       pending.chunk + 1));
  }
  if (!finite) return false;
  if (absl::Status status = HandOn(std::move(pending.decoded)); !status.ok()) return status;
  return true;
}

absl::Status ChunkOutlet::HandOn(at::Tensor decoded) {
  at::Tensor frames = std::move(decoded).to(at::kFloat);
  absl::Status status = sink_(frames.clamp_(-1.0, 1.0));
  if (status.ok()) ++reached_;
  return status;
}

}  // namespace wan
