// Weights that a test can damage before it loads a model from them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/weight_source.h"

namespace wan {

class InMemoryWeights : public WeightSource {
 public:
  // All tensors of `source`.
  static InMemoryWeights CopyOf(const WeightSource& source);

  const std::vector<TensorInfo>& Tensors() const override { return infos_; }
  const TensorInfo* Find(std::string_view name) const override;
  absl::StatusOr<TensorBytes> Read(const TensorInfo& tensor) const override;

  void Put(TensorInfo info, std::string bytes);
  void Remove(const std::string& name);
  // Same number of elements, another shape.
  void Reshape(const std::string& name, std::vector<int64_t> shape);

 private:
  std::vector<TensorInfo> infos_;
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> bytes_;
};

}  // namespace wan
