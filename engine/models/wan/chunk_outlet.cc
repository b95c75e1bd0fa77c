#include "engine/models/wan/chunk_outlet.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/TensorOperators.h>
#include <c10/core/Event.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <utility>

#include "engine/device/pinned_memory.h"

namespace wan {

// Whether a tensor is finite, told by its sum. Can be used again once it was read.
class ChunkOutlet::Check {
 public:
  Check() = default;
  Check(const Check&) = delete;
  Check& operator=(const Check&) = delete;
  ~Check() {
    if (!running_) return;
    try {
      done_->synchronize();
    } catch (const c10::Error&) {
      // The device is lost: no copy runs any more, and the next call that needs it reports that.
    }
  }

  // Queues the check behind the work that computes `x`.
  void Begin(const at::Tensor& x) {
    const at::Tensor sum = x.sum(at::kFloat);
    if (x.is_cpu()) {
      sum_ = sum;
      return;
    }
    // Page-locked, so that the copy does not make the host wait.
    if (!sum_.defined()) {
      sum_ = AllocateHostMemory(sizeof(float), x.device()).view(at::kFloat);
      done_.emplace(x.device().type());
    }
    sum_.copy_(sum, /*non_blocking=*/true);
    done_->record(at::accelerator::getCurrentStream(x.device().index()));
    running_ = true;
  }

  // Waits for the device.
  bool IsFinite() {
    if (running_) done_->synchronize();
    running_ = false;
    return std::isfinite(*sum_.const_data_ptr<float>());
  }

 private:
  at::Tensor sum_;  // one value, in host memory
  std::optional<c10::Event> done_;
  bool running_ = false;
};

ChunkOutlet::ChunkOutlet(bool checks, int64_t first, const VideoAutoencoder::FrameSink& sink)
    : first_(first), sink_(sink) {
  if (!checks) return;
  for (std::unique_ptr<Check>& check : checks_) check = std::make_unique<Check>();
}

ChunkOutlet::~ChunkOutlet() = default;

absl::StatusOr<bool> ChunkOutlet::Add(at::Tensor decoded) {
  const int64_t chunk = added_++;
  if (chunk < first_) {
    reached_ = added_;
    return true;
  }
  Check* const check = checks_[static_cast<size_t>(chunk % 2)].get();
  if (check == nullptr) {
    if (absl::Status status = HandOn(std::move(decoded)); !status.ok()) return status;
    return true;
  }
  check->Begin(decoded);
  std::optional<Pending> before =
      std::exchange(pending_, Pending{.decoded = std::move(decoded), .check = check});
  if (!before.has_value()) return true;
  absl::StatusOr<bool> finite = HandOnChecked(*std::move(before));
  if (!finite.ok() || !*finite) pending_.reset();
  return finite;
}

absl::Status ChunkOutlet::Finish() {
  std::optional<Pending> last = std::exchange(pending_, std::nullopt);
  return last.has_value() ? HandOnChecked(*std::move(last)).status() : absl::OkStatus();
}

absl::StatusOr<bool> ChunkOutlet::HandOnChecked(Pending pending) {
  if (!pending.check->IsFinite()) return false;
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
