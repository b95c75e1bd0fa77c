#include "tests/engine/in_memory_weights.h"

#include <algorithm>
#include <span>
#include <utility>

namespace wan {

InMemoryWeights InMemoryWeights::CopyOf(const WeightSource& source) {
  InMemoryWeights copy;
  for (const TensorInfo& info : source.Tensors()) {
    const TensorBytes data = source.Read(info).value();
    copy.Put(info,
             std::string(reinterpret_cast<const char*>(data.bytes.data()), data.bytes.size()));
  }
  return copy;
}

const TensorInfo* InMemoryWeights::Find(std::string_view name) const {
  const auto found = std::find_if(infos_.begin(), infos_.end(),
                                  [&](const TensorInfo& info) { return info.name == name; });
  return found == infos_.end() ? nullptr : &*found;
}

absl::StatusOr<TensorBytes> InMemoryWeights::Read(const TensorInfo& tensor) const {
  const std::shared_ptr<const std::string>& bytes = bytes_.at(tensor.name);
  return TensorBytes{std::as_bytes(std::span(bytes->data(), bytes->size())), bytes, nullptr};
}

void InMemoryWeights::Put(TensorInfo info, std::string bytes) {
  bytes_[info.name] = std::make_shared<const std::string>(std::move(bytes));
  infos_.push_back(std::move(info));
  std::sort(infos_.begin(), infos_.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
}

void InMemoryWeights::Remove(const std::string& name) {
  std::erase_if(infos_, [&](const TensorInfo& info) { return info.name == name; });
  bytes_.erase(name);
}

void InMemoryWeights::Reshape(const std::string& name, std::vector<int64_t> shape) {
  for (TensorInfo& info : infos_) {
    if (info.name == name) info.shape = std::move(shape);
  }
}

}  // namespace wan
