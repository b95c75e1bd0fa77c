#include "engine/planning/lora_memory.h"

#include <algorithm>
#include <vector>

#include "engine/costs/memory_walk.h"
#include "engine/weights/weight_patch.h"

namespace wan {
namespace {

constexpr int64_t kFp32 = 4;

int64_t BytesOf(const StoredTensor& tensor) { return static_cast<int64_t>(tensor.bytes.size()); }

}  // namespace

LoraFootprint FootprintOf(const LoraFile& file) {
  LoraFootprint largest;
  for (const LoraTerm& term : file.terms) {
    largest.factor_elements =
        std::max(largest.factor_elements, term.rank * (term.rows + term.columns));
    largest.factor_bytes = std::max(largest.factor_bytes, BytesOf(term.up) + BytesOf(term.down));
    const int64_t whole = term.rows * term.columns;
    const int64_t part = std::min(whole, std::max(kPatchElements, term.columns));
    largest.part_elements = std::max(largest.part_elements, part);
    if (term.rank == 0) {
      largest.difference_bytes =
          std::max(largest.difference_bytes, BytesOf(term.difference) / whole * part);
    }
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
  }
  const auto read = walk.Take(largest.part_elements * read_again_bytes);
  if (read_again_bytes > 0) walk.Touch(largest.part_elements * kFp32);  // the file's dtype
  const auto sum = walk.Take(largest.part_elements * kFp32);
  if (largest.difference_bytes > 0) {
    const auto stored = walk.Take(largest.difference_bytes);
    walk.Touch(largest.part_elements * kFp32);
  }
  return walk.peak();
}

}  // namespace wan
