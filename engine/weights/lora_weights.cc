#include "engine/weights/lora_weights.h"

#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/device/torch_errors.h"
#include "engine/weights/weight_loader.h"

namespace wan {
namespace {

// Alignment of tensors in bytes, sufficient for every dtype.
constexpr int64_t kAlignment = 64;

int64_t AlignedSize(const StoredTensor& tensor) {
  const auto bytes = static_cast<int64_t>(tensor.bytes.size());
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Hands out consecutive parts of one block of memory, one per tensor.
class Packer {
 public:
  Packer(const MappedFile* file, const at::Tensor& memory, const std::stop_token& stop)
      : file_(file), memory_(memory), stop_(stop) {}

  at::Tensor Pack(const StoredTensor& tensor, int64_t rows, int64_t columns) {
    // Stop here if requested, because the copy below reads the file and takes long.
    if (stop_.stop_requested()) {
      throw StatusException(absl::CancelledError("the loading of a LoRA was stopped on request"));
    }
    const auto bytes = static_cast<int64_t>(tensor.bytes.size());
    const at::Tensor place = memory_.narrow(0, used_, bytes);
    const TensorBytes source{.bytes = tensor.bytes, .owner = nullptr, .file = file_};
    absl::Status read = source.Read(
        0, std::span(static_cast<std::byte*>(place.mutable_data_ptr()), tensor.bytes.size()));
    if (!read.ok()) throw StatusException(std::move(read));
    used_ += AlignedSize(tensor);
    return place.view(ToScalarType(tensor.dtype)).view({rows, columns});
  }

 private:
  const MappedFile* const file_;
  const at::Tensor& memory_;
  const std::stop_token& stop_;
  int64_t used_ = 0;
};

}  // namespace

std::shared_ptr<const LoraWeights> LoraWeights::Load(const LoraFile& file, WeightMover& mover,
                                                     const std::stop_token& stop) {
  int64_t bytes = 0;
  for (const LoraTerm& term : file.terms) {
    bytes += AlignedSize(term.up) + AlignedSize(term.down) + AlignedSize(term.difference);
  }
  std::shared_ptr<LoraWeights> weights(new LoraWeights);
  weights->memory_ = mover.AllocateHost(bytes);
  weights->rank_ = file.rank;
  Packer packer(file.file, weights->memory_, stop);
  for (const LoraTerm& term : file.terms) {
    Term& added = weights->terms_.emplace_back();
    added.target = term.target;
    added.factor = term.factor;
    if (term.rank > 0) {
      added.up = packer.Pack(term.up, term.rows, term.rank);
      added.down = packer.Pack(term.down, term.rank, term.columns);
    } else {
      added.difference = packer.Pack(term.difference, term.rows, term.columns);
    }
  }
  return weights;
}

}  // namespace wan
