// Times the operators of one transformer block for its profile.
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

// A transformer calls Begin and End while it queues a block's work; neither function waits. The
// caller of VideoTransformer::MarkBlock reads the times once the device has done that work. Not
// thread-safe.
class BlockMarks {
 public:
  // Marks the start of the block's first operator, which begins after the work that is queued now.
  // `operators` lists the operators' names and their work for all `texts` texts, in the order of
  // End's indexes.
  void Begin(const c10::Device& device, int block, int texts, std::vector<BlockOperator> operators);

  // Marks the end of operator `index`, which ends with the work that is queued now. Operator
  // `index` began where the previous operator ended.
  void End(size_t index);

  // Returns the operators' times, or null if no block was marked. On a GPU the caller must first
  // wait for the device.
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
