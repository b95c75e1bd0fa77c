// Marks between the operators of one transformer block, from which its profile is made.
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/operator_work.h"
#include "engine/device/device_moment.h"

namespace wan {

// A transformer calls Begin and End while it queues a block's work; nothing waits. The caller of
// VideoTransformer::MarkBlock reads the marks when the device has done that work. Not thread-safe.
class BlockMarks {
 public:
  // The block's first operator begins after the work that is queued now. `operators`, which End
  // numbers, have the work of all `texts` texts.
  void Begin(const c10::Device& device, int block, int texts, std::vector<BlockOperator> operators);

  // Operator `index` ends after the work that is queued now. It began where the one before it
  // ended.
  void End(size_t index);

  // Returns the operators' times, or null if no block was marked. On a GPU the caller must have
  // waited for the device since the last End.
  std::shared_ptr<const BlockProfile> Profile(std::string part) const;

 private:
  std::optional<DeviceMoment> start_;
  c10::Device device_ = c10::kCPU;
  int block_ = 0;
  int texts_ = 0;
  std::vector<BlockOperator> operators_;
  std::vector<std::pair<size_t, DeviceMoment>> ends_;
};

}  // namespace wan
