#include "engine/checkpoint/weight_tables.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/scaled_weights.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/scaled_codes.h"

namespace wan {
namespace {

class NamedTensors : public WeightSource {
 public:
  explicit NamedTensors(std::vector<TensorInfo> tensors) : tensors_(std::move(tensors)) {
    std::sort(tensors_.begin(), tensors_.end(),
              [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  }

  const std::vector<TensorInfo>& Tensors() const override { return tensors_; }

  const TensorInfo* Find(std::string_view name) const override {
    const auto found = std::lower_bound(
        tensors_.begin(), tensors_.end(), name,
        [](const TensorInfo& tensor, std::string_view n) { return tensor.name < n; });
    return found != tensors_.end() && found->name == name ? &*found : nullptr;
  }

 private:
  std::vector<TensorInfo> tensors_;
};

class FileWeights final : public NamedTensors {
 public:
  using Contents = std::map<std::string, TensorBytes, std::less<>>;

  FileWeights(std::vector<TensorInfo> tensors, Contents contents)
      : NamedTensors(std::move(tensors)), contents_(std::move(contents)) {}

  absl::StatusOr<TensorBytes> Read(const TensorInfo& tensor) const override {
    const auto found = contents_.find(tensor.name);
    if (found == contents_.end()) {
      return Absent(tensor.file, absl::StrCat("tensor ", tensor.name, " is missing"));
    }
    const TensorBytes& mapped = found->second;
    const auto address = reinterpret_cast<uintptr_t>(mapped.bytes.data());
    if (mapped.decoder != nullptr || address % DTypeSize(tensor.dtype) == 0) return mapped;
    return Aligned(mapped);
  }

 private:
  // Neither file format promises that data are aligned, though all current programs write aligned
  // data.
  static absl::StatusOr<TensorBytes> Aligned(const TensorBytes& mapped) {
    auto copy = std::make_shared<std::vector<std::byte>>(mapped.bytes.size());
    if (absl::Status status = mapped.Read(0, *copy); !status.ok()) return status;
    return TensorBytes{.bytes = *copy, .owner = copy, .file = nullptr};
  }

  Contents contents_;
};

class SyntheticWeights final : public NamedTensors {
 public:
  SyntheticWeights(std::vector<TensorInfo> tensors, uint64_t seed)
      : NamedTensors(std::move(tensors)), seed_(seed) {}

  absl::StatusOr<TensorBytes> Read(const TensorInfo& tensor) const override {
    return absl::FailedPreconditionError(
        absl::StrCat(tensor.file, ": tensor ", tensor.name, " is synthetic and has no bytes"));
  }

  bool IsSynthetic() const override { return true; }
  uint64_t SyntheticSeed() const override { return seed_; }

 private:
  const uint64_t seed_;
};

class JoinedWeights final : public NamedTensors {
 public:
  JoinedWeights(std::unique_ptr<WeightSource> first, std::unique_ptr<WeightSource> second)
      : NamedTensors(TensorsOf(*first, *second)),
        first_(std::move(first)),
        second_(std::move(second)) {}

  absl::StatusOr<TensorBytes> Read(const TensorInfo& tensor) const override {
    return (first_->Find(tensor.name) != nullptr ? first_ : second_)->Read(tensor);
  }

 private:
  static std::vector<TensorInfo> TensorsOf(const WeightSource& first, const WeightSource& second) {
    std::vector<TensorInfo> tensors = first.Tensors();
    tensors.insert(tensors.end(), second.Tensors().begin(), second.Tensors().end());
    return tensors;
  }

  const std::unique_ptr<WeightSource> first_;
  const std::unique_ptr<WeightSource> second_;
};

// Adds a problem for each name that several tensors have, because a prefix or a program's own name
// was replaced.
StoredTensors IndexByName(const TensorFiles& files, Naming naming,
                          std::vector<absl::Status>& problems) {
  StoredTensors stored;
  for (const TensorFile& file : files.files) {
    for (const StoredTensor& tensor : file.tensors) {
      const auto [at, is_new] =
          stored.emplace(tensor.name, Located{.file = &file, .tensor = &tensor});
      if (is_new) continue;
      const std::string& other = at->second.file->path;
      problems.push_back(
          Damaged(file.path,
                  absl::StrCat("has tensor ", Printable(tensor.name),
                               other == file.path ? std::string(" under two names")
                                                  : absl::StrCat(", which ", other, " has as well"),
                               "; must be there once")));
    }
  }
  if (naming == Naming::kDiffusers) {
    // The name that the token embedding also has in the transformers library.
    if (auto tied = stored.extract("encoder.embed_tokens.weight"); !tied.empty()) {
      tied.key() = "shared.weight";
      stored.insert(std::move(tied));
    }
  }
  return stored;
}

// Whether the tensor is a patch embedding's weight in the shape of a linear layer's, as in rCM's
// checkpoints. Both shapes have the same order of elements.
bool IsFlattened(const std::vector<int64_t>& shape, const TensorSpec& spec) {
  if (spec.name != "patch_embedding.weight" || shape.size() != 2) return false;
  const int64_t patch =
      std::accumulate(spec.shape.begin() + 1, spec.shape.end(), int64_t{1}, std::multiplies<>());
  return shape[0] == spec.shape[0] && shape[1] == patch;
}

bool IsComputable(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

// Adds the problems of one stored tensor, which must become the tensor `spec`.
void CheckStored(const Located& values, const TensorSpec& spec, const std::string& name,
                 std::vector<absl::Status>& problems) {
  const StoredTensor& tensor = *values.tensor;
  const std::string alias = name == spec.name ? "" : absl::StrCat(" (", spec.name, ")");
  if (tensor.shape != spec.shape && !IsFlattened(tensor.shape, spec)) {
    problems.push_back(
        Damaged(values.file->path,
                absl::StrCat("tensor ", name, alias, " has shape ", ShapeText(tensor.shape),
                             ", expected ", ShapeText(spec.shape))));
  }
  if (!IsComputable(tensor.dtype) && !IsCode(tensor.dtype)) {
    problems.push_back(Unsupported(
        values.file->path,
        absl::StrCat("tensor ", name, alias, " has dtype ", std::string(DTypeName(tensor.dtype)),
                     ", expected F32, F16, BF16, F8_E4M3, F8_E5M2 or I8")));
  }
}

}  // namespace

std::unique_ptr<WeightSource> MakeFileWeights(const TensorFiles& files,
                                              const std::vector<TensorSpec>& specs, Naming naming,
                                              const std::string& where,
                                              std::vector<absl::Status>& problems) {
  StoredTensors stored = IndexByName(files, naming, problems);
  const std::string_view scaled = TakeMarks(stored);
  std::vector<TensorInfo> tensors;
  FileWeights::Contents contents;
  for (const TensorSpec& spec : specs) {
    const std::string& name = naming == Naming::kUpstream ? spec.name : spec.diffusers_name;
    const Located values = TakeValues(stored, name);
    if (values.tensor == nullptr) {
      const std::string alias = name == spec.name ? "" : absl::StrCat(" (", spec.name, ")");
      problems.push_back(Absent(
          where, absl::StrCat("tensor ", name, alias, " ", ShapeText(spec.shape), " is missing")));
      continue;
    }
    CheckStored(values, spec, name, problems);
    absl::StatusOr<std::shared_ptr<const TensorDecoder>> decoder =
        TakeDecoder(stored, name, values, scaled);
    if (!decoder.ok()) {
      problems.push_back(decoder.status());
      continue;
    }
    const StoredTensor& tensor = *values.tensor;
    TensorBytes bytes{.bytes = tensor.bytes,
                      .owner = values.file->mapping,
                      .file = values.file->file,
                      .decoder = *decoder};
    const bool widened = *decoder != nullptr;
    const DType dtype = widened ? DType::kBFloat16 : tensor.dtype;
    if (widened) {
      bytes.end = static_cast<size_t>(ElementCount(tensor.shape).value_or(0)) * DTypeSize(dtype);
    }
    tensors.push_back({.name = spec.name,
                       .dtype = dtype,
                       .shape = spec.shape,
                       .bytes = bytes.size(),
                       .file = values.file->path,
                       .stored_as = std::string(widened ? (*decoder)->name() : DTypeName(dtype))});
    contents.emplace(spec.name, std::move(bytes));
  }
  for (const auto& [name, located] : stored) {
    problems.push_back(Damaged(located.file->path, absl::StrCat("tensor ", Printable(name),
                                                                " is not a part of this model")));
  }
  return std::make_unique<FileWeights>(std::move(tensors), std::move(contents));
}

std::unique_ptr<WeightSource> JoinWeights(std::unique_ptr<WeightSource> first,
                                          std::unique_ptr<WeightSource> second) {
  return std::make_unique<JoinedWeights>(std::move(first), std::move(second));
}

std::unique_ptr<WeightSource> MakeSyntheticWeights(const std::vector<TensorSpec>& specs,
                                                   DType dtype, const std::string& where,
                                                   uint64_t seed) {
  std::vector<TensorInfo> tensors;
  tensors.reserve(specs.size());
  for (const TensorSpec& spec : specs) {
    const auto elements = static_cast<uint64_t>(ElementCount(spec.shape).value_or(0));
    tensors.push_back({.name = spec.name,
                       .dtype = dtype,
                       .shape = spec.shape,
                       .bytes = elements * DTypeSize(dtype),
                       .file = where,
                       .stored_as = std::string(DTypeName(dtype))});
  }
  return std::make_unique<SyntheticWeights>(std::move(tensors), seed);
}

}  // namespace wan
