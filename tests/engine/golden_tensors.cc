#include "tests/engine/golden_tensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>

#include "tests/engine/raw_tensors.h"

namespace wan {
namespace {

at::ScalarType ScalarTypeOf(const std::string& dtype) {
  static const std::map<std::string, at::ScalarType> types{
      {"F32", at::kFloat}, {"F64", at::kDouble}, {"BF16", at::kBFloat16},
      {"I64", at::kLong},  {"I32", at::kInt},    {"U8", at::kByte}};
  const auto found = types.find(dtype);
  if (found == types.end()) throw std::runtime_error("golden tensors have no dtype " + dtype);
  return found->second;
}

std::string FromEnvironment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

}  // namespace

std::string GoldenDir() { return FromEnvironment("WAN_GOLDEN_DIR", WAN_GOLDEN_DIR); }

std::string CheckpointDir() { return FromEnvironment("WAN_CHECKPOINT_DIR", WAN_CHECKPOINT_DIR); }

at::Tensor LoadGolden(std::string_view file, std::string_view name) {
  const std::string path = GoldenDir() + "/" + std::string(file);
  const std::map<std::string, RawTensor> tensors = ReadRawTensors(path);
  const auto found = tensors.find(std::string(name));
  if (found == tensors.end()) throw std::runtime_error(path + ": no tensor " + std::string(name));
  const RawTensor& raw = found->second;
  at::Tensor tensor = at::empty(raw.shape, at::TensorOptions().dtype(ScalarTypeOf(raw.dtype)));
  if (tensor.nbytes() != raw.bytes.size()) {
    throw std::runtime_error(path + ": size of tensor " + std::string(name));
  }
  std::memcpy(tensor.mutable_data_ptr(), raw.bytes.data(), raw.bytes.size());
  return tensor;
}

double RelativeError(const at::Tensor& actual, const at::Tensor& expected) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (!actual.defined() || actual.sizes() != expected.sizes()) return kNever;
  const at::Tensor a = actual.to(at::kCPU, at::kDouble);
  const at::Tensor e = expected.to(at::kCPU, at::kDouble);
  if (!at::isfinite(a).all().item<bool>()) return kNever;
  const double gap = at::linalg_vector_norm(a.sub(e)).item<double>();
  // Equal to a reference of zeros is 0, anything else beside it is infinitely far off.
  return gap == 0 ? 0 : gap / at::linalg_vector_norm(e).item<double>();
}

}  // namespace wan
