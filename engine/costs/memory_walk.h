// Computes how much device memory a piece of code would hold: it takes and frees the same blocks in
// the same order, but only as numbers.
//
//   MemoryWalk walk;
//   {
//     const MemoryWalk::Block window = walk.Take(6 * pixels * 4);
//     const MemoryWalk::Block result = walk.Take(4 * pixels * 4);
//   }
//   walk.peak();
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/costs/allocator_rounding.h"

namespace wan {

class MemoryWalk {
 public:
  // A block of memory, held while the object lives, like the memory of a tensor.
  class Block {
   public:
    Block() = default;
    Block(Block&& other) noexcept
        : walk_(std::exchange(other.walk_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Block& operator=(Block&& other) noexcept {
      Free();
      walk_ = std::exchange(other.walk_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
      return *this;
    }
    ~Block() { Free(); }

    void Free() {
      if (walk_ != nullptr) walk_->held_ -= bytes_;
      walk_ = nullptr;
      bytes_ = 0;
    }

    bool held() const { return walk_ != nullptr; }

   private:
    friend class MemoryWalk;
    Block(MemoryWalk* walk, int64_t bytes) : walk_(walk), bytes_(bytes) {}

    MemoryWalk* walk_ = nullptr;
    int64_t bytes_ = 0;
  };

  MemoryWalk() = default;
  MemoryWalk(const MemoryWalk&) = delete;
  MemoryWalk& operator=(const MemoryWalk&) = delete;

  [[nodiscard]] Block Take(int64_t bytes) {
    const int64_t rounded = AllocatedBytes(bytes);
    held_ += rounded;
    peak_ = std::max(peak_, held_);
    return Block(this, rounded);
  }

  // Counts memory that an operator needs only while it runs, on top of the held blocks.
  void Touch(int64_t bytes) { peak_ = std::max(peak_, held_ + AllocatedBytes(bytes)); }

  int64_t held() const { return held_; }
  uint64_t peak() const { return static_cast<uint64_t>(peak_); }

 private:
  int64_t held_ = 0;
  int64_t peak_ = 0;
};

}  // namespace wan
