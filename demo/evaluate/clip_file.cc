#include "demo/evaluate/clip_file.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/formats/safetensors.h"

namespace wan::demo {
namespace {

constexpr char kTensor[] = "video";

std::string Text(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace

absl::StatusOr<ClipFile> ClipFile::Open(const std::string& path) {
  const absl::StatusOr<TensorFile> file = ReadSafetensors(path);
  if (!file.ok()) return file.status();
  const auto found =
      std::find_if(file->tensors.begin(), file->tensors.end(),
                   [](const StoredTensor& tensor) { return tensor.name == kTensor; });
  if (found == file->tensors.end()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has no tensor '", kTensor, "'"));
  }
  if (found->dtype != DType::kUInt8 || found->shape.size() != 5 || found->shape[4] != 3 ||
      found->bytes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": '", kTensor, "' is to be U8 [clips, frames, height, width, 3], not ",
                     std::string(DTypeName(found->dtype)), " ", Text(found->shape)));
  }
  return ClipFile(file->mapping, *found);
}

ClipView ClipFile::operator[](size_t index) const {
  const size_t bytes = video_.bytes.size() / size();
  const auto* const pixels = reinterpret_cast<const uint8_t*>(video_.bytes.data());
  return {.rgb = {pixels + index * bytes, bytes},
          .frames = static_cast<int>(video_.shape[1]),
          .height = static_cast<int>(video_.shape[2]),
          .width = static_cast<int>(video_.shape[3])};
}

std::string ClipFile::ShapeText() const { return Text(video_.shape); }

}  // namespace wan::demo
