#include "engine/formats/latents_file.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "engine/formats/finite.h"
#include "engine/formats/safetensors.h"

namespace wan {
namespace {

constexpr char kTensor[] = "latents";
// The limit is far above the header of one tensor.
constexpr uint64_t kLongestHeader = uint64_t{1} << 20;
// The largest number of dimensions of which a message shows all; no video has more.
constexpr size_t kMostDimensions = 8;

bool IsAccepted(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

// Remembers the files whose values were read and are finite. Thread-safe.
class FiniteFiles {
 public:
  bool Contains(const std::shared_ptr<const std::string>& file) const {
    absl::MutexLock lock(&mutex_);
    return std::any_of(files_.begin(), files_.end(), [&](const auto& known) {
      return !known.owner_before(file) && !file.owner_before(known);
    });
  }
  void Add(const std::shared_ptr<const std::string>& file) {
    absl::MutexLock lock(&mutex_);
    std::erase_if(files_, [](const auto& known) { return known.expired(); });
    files_.emplace_back(file);
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::weak_ptr<const std::string>> files_ ABSL_GUARDED_BY(mutex_);
};

// Finds the tensor, whose values are not looked at.
absl::StatusOr<StoredTensor> FindTensor(std::string_view file) {
  const std::string name = "file";
  absl::StatusOr<TensorFile> read = ReadSafetensorsBytes(
      {reinterpret_cast<const std::byte*>(file.data()), file.size()}, name, kLongestHeader);
  if (!read.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is not a file of latents: ", absl::StripPrefix(read.status().message(), name + ": "),
        "; must be a safetensors file, for example the latents of an earlier job"));
  }
  std::vector<StoredTensor>& tensors = read->tensors;
  auto found = std::find_if(tensors.begin(), tensors.end(),
                            [](const StoredTensor& tensor) { return tensor.name == kTensor; });
  if (found == tensors.end() && tensors.size() == 1) found = tensors.begin();
  if (found == tensors.end()) {
    return absl::InvalidArgumentError(absl::StrCat("has ", tensors.size(),
                                                   " tensors, none of them called ", kTensor,
                                                   "; must have one tensor, or one of that name"));
  }
  StoredTensor latents = std::move(*found);
  if (!IsAccepted(latents.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has the dtype ", std::string(DTypeName(latents.dtype)), "; must be F32, F16 or BF16"));
  }
  if (latents.shape.size() > kMostDimensions) {
    return absl::InvalidArgumentError(absl::StrCat("has ", latents.shape.size(),
                                                   " dimensions; must have 4: channels, latent "
                                                   "frames, height and width"));
  }
  constexpr size_t kBatched = 5;
  if (latents.shape.size() == kBatched && latents.shape.front() == 1) {
    latents.shape.erase(latents.shape.begin());
  }
  return latents;
}

}  // namespace

absl::StatusOr<StoredTensor> FindLatents(std::string_view file) {
  absl::StatusOr<StoredTensor> latents = FindTensor(file);
  if (!latents.ok()) return latents;
  if (const std::optional<size_t> wrong = FirstNotFinite(latents->bytes, latents->dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has NaN or infinity at element ", *wrong, "; must have finite values"));
  }
  return latents;
}

absl::StatusOr<StoredTensor> FindLatentsOnce(const std::shared_ptr<const std::string>& file) {
  // Each device group has an engine of its own. One table for the process saves the other groups
  // the reading.
  static auto* const finite = new FiniteFiles();
  if (finite->Contains(file)) return FindTensor(*file);
  absl::StatusOr<StoredTensor> latents = FindLatents(*file);
  if (latents.ok()) finite->Add(file);
  return latents;
}

}  // namespace wan
