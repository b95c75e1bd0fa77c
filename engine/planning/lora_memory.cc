#include "engine/planning/lora_memory.h"

#include <algorithm>
#include <vector>

#include "engine/costs/memory_walk.h"
#include "engine/weights/weight_patch.h"

namespace wan {
namespace {

constexpr int64_t kFp32 = 4;

int64_t BytesOf(const StoredTensor& tensor) { return static_cast<int64_t>(tensor.bytes.size()); }

// Returns the number of temporary elements that LoraChange (engine/weights/lora_change.cc) computes
// for a part of `part` elements.
int64_t ScratchElements(const LoraTerm& term, int64_t part) {
  const int64_t rows = part / term.columns;
  int64_t elements = 0;
  if (term.form == LoraForm::kHadamard) elements = 2 * part;  // both products
  if (term.form == LoraForm::kKronecker) {
    constexpr int64_t kIndices = 6;  // three index lists of 64-bit numbers take the bytes of six
                                     // fp32 elements
    elements = rows * (term.first.columns + term.second.columns + term.first.rank +
                       term.second.rank + kIndices);
  }
  if (term.magnitude != LoraMagnitude::kNone) {
    constexpr int64_t kVectors = 4;
    elements += 2 * part + kVectors * std::max(rows, term.columns);  // the base, the changed
                                                                     // tensor, and the lengths
  }
  return elements;
}

}  // namespace

LoraFootprint FootprintOf(const LoraFile& file) {
  LoraFootprint largest;
  for (const LoraTerm& term : file.terms) {
    const int64_t whole = term.rows * term.columns;
    const int64_t part = std::min(whole, std::max(kPatchElements, term.columns));
    largest.part_elements = std::max(largest.part_elements, part);
    largest.scratch_elements = std::max(largest.scratch_elements, ScratchElements(term, part));
    if (term.IsDifference()) {
      largest.difference_bytes =
          std::max(largest.difference_bytes, BytesOf(term.first.whole) / whole * part);
      continue;
    }
    int64_t elements = 0;
    int64_t bytes = 0;
    for (const StoredTensor* const tensor : term.Tensors()) {
      elements += ElementCount(tensor->shape).value_or(0);
      bytes += BytesOf(*tensor);
    }
    largest.factor_elements = std::max(largest.factor_elements, elements);
    largest.factor_bytes = std::max(largest.factor_bytes, bytes);
  }
  return largest;
}

uint64_t LoraMergingBytes(std::span<const LoraFootprint> loras, int64_t read_again_bytes) {
  if (loras.empty()) return 0;
  MemoryWalk walk;
  std::vector<MemoryWalk::Block> factors;
  LoraFootprint largest;
  for (const LoraFootprint& lora : loras) {
    const auto stored = walk.Take(lora.factor_bytes);
    factors.push_back(walk.Take(lora.factor_elements * kFp32));
    largest.part_elements = std::max(largest.part_elements, lora.part_elements);
    largest.difference_bytes = std::max(largest.difference_bytes, lora.difference_bytes);
    largest.scratch_elements = std::max(largest.scratch_elements, lora.scratch_elements);
  }
  const auto read = walk.Take(largest.part_elements * read_again_bytes);
  if (read_again_bytes > 0) walk.Touch(largest.part_elements * kFp32);  // in the file's dtype
  const auto sum = walk.Take(largest.part_elements * kFp32);
  const auto scratch = walk.Take(largest.scratch_elements * kFp32);
  if (largest.difference_bytes > 0) {
    const auto stored = walk.Take(largest.difference_bytes);
    walk.Touch(largest.part_elements * kFp32);
  }
  return walk.peak();
}

}  // namespace wan
