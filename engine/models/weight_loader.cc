#include "engine/models/weight_loader.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

// FNV-1a: the same name gives the same weights in every build, which std::hash does not promise.
uint64_t SeedOf(std::string_view name) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

}  // namespace

at::ScalarType ToScalarType(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return at::kDouble;
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kBFloat16:
      return at::kBFloat16;
    case DType::kInt64:
      return at::kLong;
    case DType::kInt32:
      return at::kInt;
    case DType::kInt16:
      return at::kShort;
    case DType::kInt8:
      return at::kChar;
    case DType::kUInt8:
      return at::kByte;
    case DType::kBool:
      return at::kBool;
    case DType::kFloat8E4M3:
      return at::kFloat8_e4m3fn;
    case DType::kFloat8E5M2:
      return at::kFloat8_e5m2;
  }
  return at::ScalarType::Undefined;
}

WeightLoader::WeightLoader(const WeightSource& source, at::Device device, at::ScalarType dtype)
    : source_(source), device_(device), dtype_(dtype) {}

at::Tensor WeightLoader::Get(std::string_view name, at::IntArrayRef expected_shape) {
  return Get(name, expected_shape, dtype_);
}

at::Tensor WeightLoader::Get(std::string_view name, at::IntArrayRef expected_shape,
                             at::ScalarType dtype) {
  const TensorInfo* const info = source_.Find(name);
  if (info == nullptr) {
    status_.Update(absl::NotFoundError(
        absl::StrCat("tensor ", std::string(name), " ",
                     ShapeText({expected_shape.data(), expected_shape.size()}), " is missing")));
  } else if (at::IntArrayRef(info->shape) != expected_shape) {
    status_.Update(absl::InvalidArgumentError(
        absl::StrCat(info->file, ": tensor ", info->name, " has shape ", ShapeText(info->shape),
                     ", expected ", ShapeText({expected_shape.data(), expected_shape.size()}))));
  }
  const auto options = at::TensorOptions().device(device_).dtype(dtype);
  if (!status_.ok()) return at::zeros(expected_shape, options);
  at::Tensor tensor = source_.IsSynthetic() ? MakeSynthetic(*info, dtype) : Read(*info, dtype);
  if (!tensor.defined()) return at::zeros(expected_shape, options);
  bytes_ += static_cast<int64_t>(tensor.nbytes());
  return tensor;
}

at::Tensor WeightLoader::Read(const TensorInfo& info, at::ScalarType dtype) {
  absl::StatusOr<TensorBytes> bytes = source_.Read(info);
  if (!bytes.ok()) {
    status_.Update(bytes.status());
    return {};
  }
  // The view lives only until the copy below, so const is cast away without being violated.
  const at::Tensor mapped = at::from_blob(const_cast<std::byte*>(bytes->bytes.data()), info.shape,
                                          at::TensorOptions().dtype(ToScalarType(info.dtype)));
  // One copy, from the mapped file to where the weight will live: the model must survive the file's
  // being replaced while the server runs.
  return mapped.to(device_, dtype, /*non_blocking=*/false, /*copy=*/true);
}

at::Tensor WeightLoader::MakeSynthetic(const TensorInfo& info, at::ScalarType dtype) const {
  const auto options = at::TensorOptions().device(device_).dtype(dtype);
  const bool is_norm_weight =
      info.name.find("norm") != std::string::npos || info.name.ends_with("gamma");
  if (is_norm_weight && !info.name.ends_with("bias")) return at::ones(info.shape, options);
  int64_t fan_in = 1;
  for (size_t i = 1; i < info.shape.size(); ++i) fan_in *= info.shape[i];
  const double std = info.shape.size() >= 2 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0.02;
  at::Tensor tensor = at::empty(info.shape, options);
  at::Generator generator = at::globalContext().defaultGenerator(device_).clone();
  generator.set_current_seed(SeedOf(info.name) + source_.SyntheticSeed());
  tensor.normal_(0.0, std, generator);
  return tensor;
}

}  // namespace wan
