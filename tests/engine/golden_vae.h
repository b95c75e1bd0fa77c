// The small Wan2.2 autoencoder of tests/golden, read without the product's checkpoint code.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_source.h"

namespace wan {

// Tensors in memory, which a test may change before it loads a model from them.
class InMemoryWeights : public WeightSource {
 public:
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

VaeConfig GoldenVae22Config();
InMemoryWeights GoldenVae22Weights();

}  // namespace wan
