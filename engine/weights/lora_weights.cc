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
    // Check for a stop request, because the copy below reads the file and takes long.
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

  LoraWeights::Matrix Pack(const LoraMatrix& matrix) {
    LoraWeights::Matrix packed;
    if (matrix.rank > 0) {
      packed.up = Pack(matrix.up, matrix.rows, matrix.rank);
      packed.down = Pack(matrix.down, matrix.rank, matrix.columns);
    } else {
      packed.whole = Pack(matrix.whole, matrix.rows, matrix.columns);
    }
    return packed;
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
    for (const StoredTensor* const tensor : term.Tensors()) bytes += AlignedSize(*tensor);
  }
  std::shared_ptr<LoraWeights> weights(new LoraWeights);
  weights->memory_ = mover.AllocateHost(bytes);
  weights->rank_ = file.rank;
  Packer packer(file.file, weights->memory_, stop);
  for (const LoraTerm& term : file.terms) {
    Term& added = weights->terms_.emplace_back();
    added.target = term.target;
    added.form = term.form;
    added.magnitude = term.magnitude;
    added.factor = term.factor;
    added.first = packer.Pack(term.first);
    if (term.form != LoraForm::kOne) added.second = packer.Pack(term.second);
    if (term.magnitude == LoraMagnitude::kNone) continue;
    added.lengths = packer.Pack(term.lengths, 1, *ElementCount(term.lengths.shape)).view({-1});
  }
  return weights;
}

}  // namespace wan
