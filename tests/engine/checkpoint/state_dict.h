// A state dict of given names and shapes in a ".pth" archive, all zeros in fp32, and pieces of its
// pickle for those who want it wrong.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/expected_tensors.h"
#include "engine/checkpoint/weight_source.h"
#include "tests/engine/formats/files.h"

namespace wan::testing {

class StateDict {
 public:
  explicit StateDict(std::vector<TensorSpec> specs) : specs_(std::move(specs)) {}

  size_t size() const { return specs_.size(); }
  const TensorSpec& spec(size_t i) const { return specs_[i]; }

  int32_t Elements(size_t i) const { return static_cast<int32_t>(*ElementCount(specs_[i].shape)); }

  std::vector<int32_t> Shape(size_t i) const {
    return {specs_[i].shape.begin(), specs_[i].shape.end()};
  }

  static std::vector<int32_t> Strides(const std::vector<int32_t>& shape) {
    std::vector<int32_t> strides(shape.size(), 1);
    for (size_t axis = shape.size() - 1; axis > 0; --axis) {
      strides[axis - 1] = strides[axis] * shape[axis];
    }
    return strides;
  }

  std::string Storage(size_t i, const char* type = "FloatStorage") const {
    return pickle::Storage(type, std::to_string(i), Elements(i));
  }

  std::string Tensor(size_t i) const {
    return pickle::Tensor(Storage(i), 0, Shape(i), Strides(Shape(i)));
  }

  // The archive; the tensor at `changed` with another name and pickle.
  std::string Bytes(size_t changed = SIZE_MAX, const std::string& name = "",
                    const std::string& tensor = "") const {
    std::vector<std::pair<std::string, std::string>> entries;
    std::vector<std::string> storages;
    for (size_t i = 0; i < specs_.size(); ++i) {
      entries.emplace_back(i == changed ? name : specs_[i].name, i == changed ? tensor : Tensor(i));
      storages.push_back(std::string(4 * Elements(i), '\0'));
    }
    return TorchArchiveBytes(pickle::Whole(pickle::Dict(entries)), storages);
  }

 private:
  const std::vector<TensorSpec> specs_;
};

}  // namespace wan::testing
