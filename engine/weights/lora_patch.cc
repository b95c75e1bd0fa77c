#include "engine/weights/lora_patch.h"

#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace wan {
namespace {

struct Addition {
  const LoraWeights::Term* term = nullptr;
  double factor = 1;  // the LoRA's factor times the request's scale
};

struct Change {
  at::Tensor target;
  std::vector<Addition> additions;
};

// Copies a matrix to the device and converts it to fp32 there, which is faster than on the host.
at::Tensor ToDevice(const at::Tensor& host, at::Device device) {
  return host.to(device, /*non_blocking=*/true).to(at::kFloat);
}

// The matrices of one addition, copied to the device; every range of rows uses the same.
struct Factors {
  at::Tensor up;
  at::Tensor down;
};

void Merge(const Change& change) {
  const at::Tensor matrix = change.target.view({change.target.size(0), -1});
  const at::Device device = matrix.device();
  std::vector<Factors> factors;
  for (const Addition& addition : change.additions) {
    Factors& added = factors.emplace_back();
    if (!addition.term->up.defined()) continue;
    added.up = ToDevice(addition.term->up, device);
    added.down = ToDevice(addition.term->down, device);
  }
  const int64_t rows = matrix.size(0);
  const int64_t step = std::max<int64_t>(kPatchElements / matrix.size(1), 1);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    const at::Tensor part = matrix.narrow(0, first, count);
    const at::Tensor sum = part.to(at::kFloat);  // shares the part's memory if that is fp32
    for (size_t i = 0; i < change.additions.size(); ++i) {
      const Addition& addition = change.additions[i];
      if (factors[i].up.defined()) {
        sum.addmm_(factors[i].up.narrow(0, first, count), factors[i].down, 1, addition.factor);
      } else {
        const at::Tensor difference = addition.term->difference.narrow(0, first, count);
        sum.add_(ToDevice(difference, device), addition.factor);
      }
    }
    if (!sum.is_same(part)) part.copy_(sum);
  }
}

class LoraPatch final : public WeightPatch {
 public:
  LoraPatch(std::map<size_t, std::vector<Change>> groups, std::vector<ScaledLora> loras)
      : groups_(std::move(groups)), loras_(std::move(loras)) {}

  bool Touches(size_t group) const override { return groups_.contains(group); }

  void Apply(size_t group) const override {
    const c10::InferenceMode inference;
    for (const Change& change : groups_.at(group)) Merge(change);
  }

 private:
  const std::map<size_t, std::vector<Change>> groups_;
  const std::vector<ScaledLora> loras_;  // owns the terms that groups_ points to
};

}  // namespace

std::shared_ptr<const WeightPatch> MakeLoraPatch(const ComponentWeights& weights,
                                                 std::span<const ScaledLora> loras) {
  std::map<std::string_view, std::vector<Addition>> additions;
  for (const ScaledLora& lora : loras) {
    for (const LoraWeights::Term& term : lora.weights->terms()) {
      const double factor = lora.scale * term.factor;
      if (factor != 0) additions[term.target].push_back({&term, factor});
    }
  }
  if (additions.empty()) return nullptr;
  std::map<size_t, std::vector<Change>> groups;
  for (auto& [name, terms] : additions) {
    const std::optional<NamedWeight> target = weights.Find(name);
    TORCH_CHECK(target.has_value(), "a LoRA changes ", name, ", which the component has not");
    groups[target->group].push_back({target->tensor, std::move(terms)});
  }
  return std::make_shared<LoraPatch>(std::move(groups),
                                     std::vector<ScaledLora>(loras.begin(), loras.end()));
}

}  // namespace wan
