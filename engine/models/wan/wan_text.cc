#include "engine/models/wan/wan_text.h"

#include <ATen/ops/div.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <atomic>

namespace wan {

std::optional<double> WanTextConditioning::ChangeRatio() const {
  if (!change.defined()) return std::nullopt;
  const at::Tensor norms = at::linalg_vector_norm(change, 2, {-1});
  const at::Tensor before = std::exchange(norms_, norms);
  if (!before.defined()) return std::nullopt;
  return at::div(norms, before).mean().item<double>();
}

uint64_t WanTextConditioning::NextId() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace wan
