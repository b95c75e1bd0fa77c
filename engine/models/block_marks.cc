#include "engine/models/block_marks.h"

namespace wan {

void BlockMarks::Begin(const c10::Device& device, int block, int texts,
                       std::vector<BlockOperator> operators) {
  device_ = device;
  block_ = block;
  texts_ = texts;
  operators_ = std::move(operators);
  ends_.clear();
  start_.emplace(device);
}

void BlockMarks::End(size_t index) { ends_.emplace_back(index, DeviceMoment(device_)); }

std::shared_ptr<const BlockProfile> BlockMarks::Profile(std::string part) const {
  if (!start_.has_value()) return nullptr;
  auto profile = std::make_shared<BlockProfile>();
  profile->part = std::move(part);
  profile->block = block_;
  profile->texts = texts_;
  const DeviceMoment* before = &*start_;
  for (const auto& [index, end] : ends_) {
    profile->operators.push_back({operators_[index], before->SecondsUntil(end)});
    before = &end;
  }
  return profile;
}

}  // namespace wan
