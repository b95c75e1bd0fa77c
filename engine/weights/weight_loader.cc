#include "engine/weights/weight_loader.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

// Of tensors that are on the device in their file's dtype or order.
constexpr int64_t kMostStagedBytes = int64_t{512} << 20;

absl::Status StoppedError() { return absl::CancelledError("the loading was stopped on request"); }

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

WeightLoader::WeightLoader(const WeightSource& source, at::Device device, at::ScalarType dtype,
                           std::shared_ptr<ComponentWeights> weights, std::stop_token stop)
    : source_(source),
      device_(device),
      dtype_(dtype),
      weights_(weights != nullptr ? std::move(weights)
                                  : std::make_shared<ComponentWeights>(
                                        MakeWeightMover(device), ComponentWeights::Home::kDevice)),
      stop_(std::move(stop)) {}

at::Tensor WeightLoader::Get(std::string_view name, at::IntArrayRef expected_shape) {
  return Get(name, expected_shape, dtype_);
}

at::Tensor WeightLoader::Get(std::string_view name, at::IntArrayRef expected_shape,
                             at::ScalarType dtype) {
  at::Tensor tensor = Allocate(expected_shape, dtype);
  Fill(name, tensor);
  return tensor;
}

at::Tensor WeightLoader::GetStacked(std::span<const std::string> names,
                                    at::IntArrayRef expected_shape, at::ScalarType dtype) {
  std::vector<int64_t> shape = expected_shape.vec();
  shape[0] *= static_cast<int64_t>(names.size());
  at::Tensor stacked = Allocate(shape, dtype);
  for (size_t i = 0; i < names.size(); ++i) {
    const int64_t rows = expected_shape[0];
    Fill(names[i], stacked.narrow(0, static_cast<int64_t>(i) * rows, rows));
  }
  return stacked;
}

at::Tensor WeightLoader::GetKernel(std::string_view name, at::IntArrayRef expected_shape,
                                   at::MemoryFormat layout) {
  at::Tensor kernel = Allocate(expected_shape, dtype_, layout);
  Fill(name, kernel);
  return kernel;
}

void WeightLoader::Change(std::function<void()> change) {
  if (!status_.ok()) return;  // there are no values to change
  if (upload_ == nullptr) {
    change();
  } else {
    changes_.push_back(std::move(change));
  }
}

void WeightLoader::BeginGroup() {
  if (!status_.ok()) return;  // nobody will use the groups, and copying them takes time
  // Only a group that leaves for host memory must be complete by now.
  if (weights_->home() == ComponentWeights::Home::kHost) Settle();
  weights_->BeginGroup();
}

std::shared_ptr<ComponentWeights> WeightLoader::Finish() {
  Settle();
  stop_upload_.reset();
  upload_.reset();
  if (status_.ok()) weights_->FinishBuilding();
  return weights_;
}

at::Tensor WeightLoader::Allocate(at::IntArrayRef shape, at::ScalarType dtype,
                                  at::MemoryFormat layout) {
  const auto options = at::TensorOptions().device(device_).dtype(dtype).memory_format(layout);
  at::Tensor tensor = at::empty(shape, options);
  bytes_ += static_cast<int64_t>(tensor.nbytes());
  weights_->Add(tensor);
  return tensor;
}

void WeightLoader::Fill(std::string_view name, const at::Tensor& out) {
  if (stop_.stop_requested()) {
    status_.Update(StoppedError());
    return;
  }
  weights_->Name(name, out);
  const at::IntArrayRef expected = out.sizes();
  const TensorInfo* const info = source_.Find(name);
  if (info == nullptr) {
    status_.Update(absl::NotFoundError(absl::StrCat("tensor ", std::string(name), " ",
                                                    ShapeText({expected.data(), expected.size()}),
                                                    " is missing")));
  } else if (at::IntArrayRef(info->shape) != expected) {
    status_.Update(absl::InvalidArgumentError(
        absl::StrCat(info->file, ": tensor ", info->name, " has shape ", ShapeText(info->shape),
                     ", expected ", ShapeText({expected.data(), expected.size()}))));
  }
  if (!status_.ok()) {
    out.zero_();
  } else if (source_.IsSynthetic()) {
    MakeSynthetic(*info, out);
  } else {
    Read(*info, out);
  }
}

void WeightLoader::Read(const TensorInfo& info, const at::Tensor& out) {
  absl::StatusOr<TensorBytes> bytes = source_.Read(info);
  if (!bytes.ok()) {
    status_.Update(bytes.status());
    out.zero_();
    return;
  }
  // One copy, from the mapped file to where the weight will live: the model must survive the file's
  // being replaced while the server runs.
  if (!weights_->mover().DeviceIsHost()) {
    Upload(*std::move(bytes), info, out);
    return;
  }
  // The view lives only until the copy below, so const is cast away without being violated.
  const at::Tensor mapped = at::from_blob(const_cast<std::byte*>(bytes->bytes.data()), info.shape,
                                          at::TensorOptions().dtype(ToScalarType(info.dtype)));
  out.copy_(mapped);
}

void WeightLoader::Upload(TensorBytes bytes, const TensorInfo& info, const at::Tensor& out) {
  if (upload_ == nullptr) {
    upload_ = std::make_unique<StagedUpload>(weights_->mover());
    stop_upload_.emplace(stop_, [upload = upload_.get()] { upload->Abandon(StoppedError()); });
  }
  const at::ScalarType stored = ToScalarType(info.dtype);
  if (stored == out.scalar_type() && out.is_contiguous()) {
    upload_->Copy(std::move(bytes), out.flatten().view(at::kByte));
    return;
  }
  // The device converts and rearranges faster than the host, many tensors after one wait.
  const at::Tensor raw = at::empty(info.shape, out.options().dtype(stored));
  upload_->Copy(std::move(bytes), raw.flatten().view(at::kByte));
  changes_.push_back([raw, out] { out.copy_(raw); });
  staged_bytes_ += static_cast<int64_t>(raw.nbytes());
  if (staged_bytes_ >= kMostStagedBytes) Settle();
}

void WeightLoader::Settle() {
  if (upload_ == nullptr) return;
  status_.Update(upload_->Arrive());
  if (status_.ok()) {
    for (const std::function<void()>& change : changes_) change();
  }
  changes_.clear();
  staged_bytes_ = 0;
}

void WeightLoader::MakeSynthetic(const TensorInfo& info, const at::Tensor& out) const {
  const bool is_norm_weight =
      info.name.find("norm") != std::string::npos || info.name.ends_with("gamma");
  if (is_norm_weight && !info.name.ends_with("bias")) {
    out.fill_(1);
    return;
  }
  int64_t fan_in = 1;
  for (size_t i = 1; i < info.shape.size(); ++i) fan_in *= info.shape[i];
  const double std = info.shape.size() >= 2 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0.02;
  at::Generator generator = at::globalContext().defaultGenerator(device_).clone();
  generator.set_current_seed(SeedOf(info.name) + source_.SyntheticSeed());
  // The numbers are drawn in the order of memory, which must not change the tensor.
  if (out.is_contiguous()) {
    out.normal_(0.0, std, generator);
  } else {
    out.copy_(at::empty(info.shape, out.options()).normal_(0.0, std, generator));
  }
}

}  // namespace wan
