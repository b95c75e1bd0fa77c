#include "engine/weights/lora_patch.h"

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/device/torch_errors.h"
#include "engine/weights/lora_change.h"
#include "engine/weights/weight_filler.h"

namespace wan {
namespace {

struct Change {
  NamedWeight target;
  const TensorInfo* base = nullptr;  // if the target is in 8 bits: its exact tensor in the
                                     // checkpoint
  std::vector<LoraAddition> additions;
};

// Number of threads that read the exact values of 8-bit targets, a few rows at a time. More threads
// have more buffers, and locking these would take longer than reading.
constexpr int kReadingThreads = 4;

// Returns the unrounded rows, from `first` on, of a target that is kept in 8 bits.
at::Tensor ReadBase(const Change& change, int64_t first, int64_t count, WeightFiller& filler) {
  const at::Tensor& codes = change.target.rounded.codes;
  const at::Tensor rows =
      at::empty({count, codes.size(1)}, codes.options().dtype(change.target.rounded_from));
  filler.FillRows(*change.base, first, rows);
  filler.Settle();
  if (!filler.status().ok()) throw StatusException(filler.status());
  return rows;
}

// `filler` reads the base of targets in 8 bits.
void Merge(const Change& change, WeightFiller* filler) {
  const RoundedRows& rounded = change.target.rounded;
  const at::Tensor matrix = rounded.defined()
                                ? rounded.codes
                                : change.target.tensor.view({change.target.tensor.size(0), -1});
  const auto base = [&](int64_t first, int64_t count) {
    return rounded.defined() ? ReadBase(change, first, count, *filler)
                             : matrix.narrow(0, first, count);
  };
  const int64_t rows = matrix.size(0);
  const int64_t step = std::max<int64_t>(kPatchElements / matrix.size(1), 1);
  const LoraChange additions(
      change.additions, rows, step, matrix.device(), [&](int64_t first, int64_t count) {
        return base(first, count).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
      });
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    const at::Tensor part = base(first, count);
    const at::Tensor sum = part.to(at::kFloat);  // no copy if the part is fp32
    additions.AddTo(sum, first);
    if (!sum.is_same(part)) part.copy_(sum);
    if (rounded.defined()) RoundRows(part, rounded.Rows(first, count));
  }
}

class LoraPatch final : public WeightPatch {
 public:
  LoraPatch(std::map<size_t, std::vector<Change>> groups, std::vector<ScaledLora> loras,
            std::shared_ptr<const WeightSource> source)
      : groups_(std::move(groups)), loras_(std::move(loras)), source_(std::move(source)) {}

  bool Touches(size_t group) const override { return groups_.contains(group); }

  void Apply(size_t group, WeightMover& mover) const override {
    const c10::InferenceMode inference;
    std::optional<WeightFiller> filler;
    if (source_ != nullptr) {
      UploadSettings settings;
      settings.threads = std::min(settings.threads, kReadingThreads);
      settings.buffers = 2;
      filler.emplace(*source_, mover, std::stop_token(), settings);
    }
    for (const Change& change : groups_.at(group)) Merge(change, filler ? &*filler : nullptr);
  }

 private:
  const std::map<size_t, std::vector<Change>> groups_;
  const std::vector<ScaledLora> loras_;               // keeps the terms in groups_ valid
  const std::shared_ptr<const WeightSource> source_;  // null if no target is in 8 bits
};

}  // namespace

std::shared_ptr<const WeightPatch> MakeLoraPatch(const ComponentWeights& weights,
                                                 std::span<const ScaledLora> loras) {
  std::map<std::string_view, std::vector<LoraAddition>> additions;
  for (const ScaledLora& lora : loras) {
    for (const LoraWeights::Term& term : lora.weights->terms()) {
      // A DoRA changes the weight even if its factor is 0.
      const bool changes = term.factor != 0 || term.magnitude != LoraMagnitude::kNone;
      if (lora.scale != 0 && changes) additions[term.target].push_back({&term, lora.scale});
    }
  }
  if (additions.empty()) return nullptr;
  std::map<size_t, std::vector<Change>> groups;
  std::shared_ptr<const WeightSource> source;
  for (auto& [name, terms] : additions) {
    const std::optional<NamedWeight> target = weights.Find(name);
    TORCH_CHECK(target.has_value(), "a LoRA changes ", name, ", which the component has not");
    Change& change = groups[target->group].emplace_back();
    change.target = *target;
    change.additions = std::move(terms);
    if (!target->rounded.defined()) continue;
    source = weights.source();
    TORCH_CHECK(source != nullptr, "a LoRA changes ", name, ", whose unrounded values are gone");
    change.base = source->Find(name);
  }
  return std::make_shared<LoraPatch>(
      std::move(groups), std::vector<ScaledLora>(loras.begin(), loras.end()), std::move(source));
}

}  // namespace wan
