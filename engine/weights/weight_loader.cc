#include "engine/weights/weight_loader.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/weights/weight_reader.h"

namespace wan {
namespace {

// Reads a component's groups again by repeating the steps that their loader recorded.
class RecordedReader final : public WeightReader {
 public:
  RecordedReader(std::shared_ptr<const WeightSource> source,
                 std::vector<std::vector<WeightLoader::Step>> steps)
      : source_(std::move(source)), steps_(std::move(steps)) {}

  absl::Status Read(std::span<const size_t> groups, WeightMover& mover,
                    const std::stop_token& stop) const override {
    WeightFiller filler(*source_, mover, stop);
    for (const size_t group : groups) {
      for (const WeightLoader::Step& step : steps_[group]) {
        step(filler);
        if (!filler.status().ok()) return filler.status();
      }
    }
    filler.Settle();
    return filler.status();
  }

 private:
  const std::shared_ptr<const WeightSource> source_;
  const std::vector<std::vector<WeightLoader::Step>> steps_;  // the steps of each group
};

}  // namespace

WeightLoader::WeightLoader(const WeightSource& source, at::Device device, at::ScalarType dtype,
                           std::shared_ptr<ComponentWeights> weights, std::stop_token stop)
    : source_(source),
      device_(device),
      dtype_(dtype),
      weights_(weights != nullptr ? std::move(weights)
                                  : std::make_shared<ComponentWeights>(
                                        MakeWeightMover(device), ComponentWeights::Home::kDevice)),
      stop_(stop),
      steps_(1) {
  filler_.emplace(source_, weights_->mover(), std::move(stop));
}

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

RoundedRows WeightLoader::GetRounded(std::string_view name, at::IntArrayRef expected_shape,
                                     at::ScalarType code) {
  const std::string only(name);
  return GetRoundedStacked({&only, 1}, expected_shape, code);
}

RoundedRows WeightLoader::GetRoundedStacked(std::span<const std::string> names,
                                            at::IntArrayRef expected_shape, at::ScalarType code) {
  const int64_t rows = expected_shape[0];
  const int64_t all = rows * static_cast<int64_t>(names.size());
  const RoundedRows stacked = {Allocate({all, expected_shape[1]}, code),
                               Allocate({all}, at::kFloat)};
  for (size_t i = 0; i < names.size(); ++i) {
    Fill(names[i], stacked.Rows(static_cast<int64_t>(i) * rows, rows));
  }
  return stacked;
}

void WeightLoader::Change(std::function<void()> change) {
  if (!status_.ok()) return;  // after a failure the tensors have no values to change
  steps_.back().push_back([change](WeightFiller& filler) { filler.Change(change); });
  filler_->Change(std::move(change));
}

void WeightLoader::BeginGroup() {
  if (!status_.ok()) return;  // nobody uses the groups of a component that failed
  // A group must be complete now only if it will leave the device.
  if (weights_->home() != ComponentWeights::Home::kDevice) Settle();
  weights_->BeginGroup();
  steps_.emplace_back();
}

std::shared_ptr<ComponentWeights> WeightLoader::Finish() {
  Settle();
  filler_.reset();
  if (!status_.ok()) return weights_;
  weights_->FinishBuilding();
  if (weights_->source() != nullptr) {
    weights_->SetReader(std::make_unique<RecordedReader>(weights_->source(), std::move(steps_)));
  }
  return weights_;
}

void WeightLoader::Settle() {
  filler_->Settle();
  status_.Update(filler_->status());
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
  weights_->Name(name, out);
  const bool written = Run(name, out.sizes(), [out](WeightFiller& filler, const TensorInfo& info) {
    filler.Fill(info, out);
  });
  if (!written && !stop_.stop_requested()) out.zero_();
}

void WeightLoader::Fill(std::string_view name, const RoundedRows& out) {
  weights_->Name(name, out, dtype_);
  const bool written = Run(name, out.codes.sizes(),
                           [out, dtype = dtype_](WeightFiller& filler, const TensorInfo& info) {
                             filler.FillRounded(info, dtype, out);
                           });
  if (written || stop_.stop_requested()) return;
  out.codes.view(at::kByte).zero_();
  out.scales.zero_();
}

bool WeightLoader::Run(std::string_view name, at::IntArrayRef expected,
                       std::function<void(WeightFiller&, const TensorInfo&)> write) {
  if (stop_.stop_requested()) {
    status_.Update(absl::CancelledError("the loading was stopped on request"));
    return false;
  }
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
  if (!status_.ok()) return false;
  // Copies the bytes instead of mapping them, because the file may be replaced while the server
  // runs.
  write(*filler_, *info);
  status_.Update(filler_->status());
  steps_.back().push_back(
      [info, write = std::move(write)](WeightFiller& filler) { write(filler, *info); });
  return status_.ok();
}

}  // namespace wan
