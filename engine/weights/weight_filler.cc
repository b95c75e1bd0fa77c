#include "engine/weights/weight_filler.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace wan {
namespace {

// The maximum number of bytes that may wait on the device, in the file's dtype or order, until they
// are converted.
constexpr int64_t kMostStagedBytes = int64_t{512} << 20;
// Number of elements of a matrix that wait for rounding at a time, in the compute dtype.
constexpr int64_t kRoundedElements = int64_t{1} << 25;
// Number of elements that are rounded at a time on a CPU or to int8, where rounding makes four
// copies in fp32.
constexpr int64_t kRoundedInCopies = int64_t{1} << 20;
// The number of elements that a CPU converts at a time.
constexpr int64_t kConvertedElements = int64_t{4} << 20;
// On a CPU, larger synthetic tensors repeat this many random numbers, because drawing all numbers
// of a large text encoder would take minutes. The period is prime, so that no two rows of a matrix
// begin with the same numbers.
constexpr int64_t kMostDrawnOnCpu = 4194301;

absl::Status StoppedError() { return absl::CancelledError("the loading was stopped on request"); }

// Hashes with FNV-1a. With std::hash, a tensor's numbers could differ from build to build.
uint64_t SeedOf(std::string_view name) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

// Fills `out` (contiguous, on the CPU) with bytes of the source, starting at `offset`.
absl::Status ReadBytes(const TensorBytes& source, size_t offset, const at::Tensor& out) {
  return source.Read(offset, std::span(static_cast<std::byte*>(out.mutable_data_ptr()),
                                       static_cast<size_t>(out.nbytes())));
}

// `out` is on the CPU; its dtype or memory order may differ from the file's.
absl::Status ReadOnHost(const TensorBytes& source, at::ScalarType stored, const at::Tensor& out) {
  if (!out.is_contiguous()) {
    const at::Tensor raw = at::empty(out.sizes(), out.options().dtype(stored));
    absl::Status status = ReadBytes(source, 0, raw);
    if (status.ok()) out.copy_(raw);
    return status;
  }
  if (stored == out.scalar_type()) return ReadBytes(source, 0, out);
  const at::Tensor flat = out.flatten();
  const at::Tensor raw =
      at::empty({std::min(flat.numel(), kConvertedElements)}, out.options().dtype(stored));
  for (int64_t first = 0; first < flat.numel(); first += raw.numel()) {
    const at::Tensor part = raw.narrow(0, 0, std::min(raw.numel(), flat.numel() - first));
    const auto offset = static_cast<size_t>(first) * at::elementSize(stored);
    if (absl::Status status = ReadBytes(source, offset, part); !status.ok()) return status;
    flat.narrow(0, first, part.numel()).copy_(part);
  }
  return absl::OkStatus();
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

WeightFiller::WeightFiller(const WeightSource& source, WeightMover& mover, std::stop_token stop,
                           const UploadSettings& upload_settings)
    : source_(source), mover_(mover), stop_(std::move(stop)), upload_settings_(upload_settings) {}

void WeightFiller::Fill(const TensorInfo& info, const at::Tensor& out) {
  if (stop_.stop_requested()) status_.Update(StoppedError());
  if (!status_.ok()) return;
  if (source_.IsSynthetic()) {
    MakeSynthetic(info, out);
    return;
  }
  absl::StatusOr<TensorBytes> bytes = source_.Read(info);
  if (bytes.ok()) {
    Write(*std::move(bytes), ToScalarType(info.dtype), out);
  } else {
    status_.Update(bytes.status());
  }
}

void WeightFiller::FillRows(const TensorInfo& info, int64_t first, const at::Tensor& out) {
  if (out.size(0) == info.shape[0]) {
    Fill(info, out);
    return;
  }
  if (stop_.stop_requested()) status_.Update(StoppedError());
  if (!status_.ok()) return;
  if (source_.IsSynthetic()) {
    // The numbers are drawn for the whole tensor.
    const at::Tensor whole = at::empty(info.shape, out.options());
    MakeSynthetic(info, whole);
    out.copy_(whole.narrow(0, first, out.size(0)));
    return;
  }
  absl::StatusOr<TensorBytes> bytes = source_.Read(info);
  if (!bytes.ok()) {
    status_.Update(bytes.status());
    return;
  }
  const at::ScalarType stored = ToScalarType(info.dtype);
  const size_t row_bytes = static_cast<size_t>(out.size(1)) * at::elementSize(stored);
  Write(bytes->Part(static_cast<size_t>(first) * row_bytes,
                    static_cast<size_t>(out.size(0)) * row_bytes),
        stored, out);
}

void WeightFiller::FillRounded(const TensorInfo& info, at::ScalarType dtype,
                               const RoundedRows& out) {
  if (CopyCodes(info, out)) return;
  const int64_t rows = out.codes.size(0);
  const int64_t columns = out.codes.size(1);
  const auto rows_of = [columns](int64_t elements) {
    return std::max<int64_t>(elements / std::max<int64_t>(columns, 1), 1);
  };
  const int64_t waiting = mover_.DeviceIsHost() ? kRoundedInCopies : kRoundedElements;
  const bool copies = mover_.DeviceIsHost() || out.codes.scalar_type() == at::kChar;
  const int64_t rounded = rows_of(copies ? kRoundedInCopies : waiting);
  // A synthetic source would draw the whole tensor for every part.
  const int64_t filled = source_.IsSynthetic() ? std::max<int64_t>(rows, 1) : rows_of(waiting);
  for (int64_t first = 0; first < rows && status_.ok(); first += filled) {
    const int64_t count = std::min(filled, rows - first);
    const at::Tensor part = at::empty({count, columns}, out.codes.options().dtype(dtype));
    FillRows(info, first, part);
    Change([part, rounded, to = out.Rows(first, count)] {
      for (int64_t row = 0; row < part.size(0); row += rounded) {
        const int64_t some = std::min(rounded, part.size(0) - row);
        RoundRows(part.narrow(0, row, some), to.Rows(row, some));
      }
    });
    Stage(part);
  }
}

bool WeightFiller::CopyCodes(const TensorInfo& info, const RoundedRows& out) {
  if (source_.IsSynthetic() || !status_.ok()) return false;
  if (stop_.stop_requested()) {
    status_.Update(StoppedError());
    return true;
  }
  absl::StatusOr<TensorBytes> bytes = source_.Read(info);
  // The caller reports the error.
  if (!bytes.ok() || bytes->decoder == nullptr) return false;
  const ScaledRows* const form = bytes->decoder->scaled_rows();
  if (form == nullptr || ToScalarType(form->code) != out.codes.scalar_type()) return false;
  const at::Tensor scales =
      at::empty({static_cast<int64_t>(form->scales.size())}, at::TensorOptions().dtype(at::kFloat));
  std::copy(form->scales.begin(), form->scales.end(), scales.mutable_data_ptr<float>());
  Change([scales, to = out.scales] { to.copy_(scales); });  // one scale goes to all rows
  // Without the decoder the bytes are the codes.
  bytes->decoder = nullptr;
  Write(*std::move(bytes), out.codes.scalar_type(), out.codes);
  return true;
}

void WeightFiller::Write(TensorBytes bytes, at::ScalarType stored, const at::Tensor& out) {
  if (mover_.DeviceIsHost()) {
    status_.Update(ReadOnHost(bytes, stored, out));
  } else {
    Upload(std::move(bytes), stored, out);
  }
}

void WeightFiller::Change(std::function<void()> change) {
  if (!status_.ok()) return;  // after a failure there are no values to change
  if (upload_ == nullptr) {
    change();
  } else {
    changes_.push_back(std::move(change));
  }
}

void WeightFiller::Upload(TensorBytes bytes, at::ScalarType stored, const at::Tensor& out) {
  if (upload_ == nullptr) {
    upload_ = std::make_unique<StagedUpload>(mover_, upload_settings_);
    stop_upload_.emplace(stop_, [upload = upload_.get()] { upload->Abandon(StoppedError()); });
  }
  if (stored == out.scalar_type() && out.is_contiguous()) {
    upload_->Copy(std::move(bytes), out.flatten().view(at::kByte));
    return;
  }
  // Copy raw bytes: the device converts and rearranges faster than the host, and one wait serves
  // many tensors.
  const at::Tensor raw = at::empty(out.sizes(), out.options().dtype(stored));
  upload_->Copy(std::move(bytes), raw.flatten().view(at::kByte));
  changes_.push_back([raw, out] { out.copy_(raw); });
  Stage(raw);
}

void WeightFiller::Stage(const at::Tensor& waiting) {
  if (upload_ == nullptr) return;  // without an upload, no tensor waits
  staged_bytes_ += static_cast<int64_t>(waiting.nbytes());
  if (staged_bytes_ >= kMostStagedBytes) Settle();
}

void WeightFiller::Settle() {
  if (upload_ == nullptr) return;
  status_.Update(upload_->Arrive());
  if (status_.ok()) {
    for (const std::function<void()>& change : changes_) change();
  }
  changes_.clear();
  staged_bytes_ = 0;
}

void WeightFiller::MakeSynthetic(const TensorInfo& info, const at::Tensor& out) const {
  const bool is_norm_weight =
      info.name.find("norm") != std::string::npos || info.name.ends_with("gamma");
  if (is_norm_weight && !info.name.ends_with("bias")) {
    out.fill_(1);
    return;
  }
  int64_t fan_in = 1;
  for (size_t i = 1; i < info.shape.size(); ++i) fan_in *= info.shape[i];
  const double std = info.shape.size() >= 2 ? 1.0 / std::sqrt(static_cast<double>(fan_in)) : 0.02;
  at::Generator generator = at::globalContext().defaultGenerator(out.device()).clone();
  generator.set_current_seed(SeedOf(info.name) + source_.SyntheticSeed());
  // Draw in row-major order, so that the numbers do not depend on the memory layout.
  const at::Tensor drawn = out.is_contiguous() ? out : at::empty(info.shape, out.options());
  const at::Tensor numbers = drawn.view(-1);
  const int64_t different =
      out.is_cpu() ? std::min(numbers.numel(), kMostDrawnOnCpu) : numbers.numel();
  numbers.narrow(0, 0, different).normal_(0.0, std, generator);
  for (int64_t filled = different; filled < numbers.numel(); filled += different) {
    const int64_t count = std::min(different, numbers.numel() - filled);
    numbers.narrow(0, filled, count).copy_(numbers.narrow(0, 0, count));
  }
  if (!drawn.is_same(out)) out.copy_(drawn);
}

}  // namespace wan
