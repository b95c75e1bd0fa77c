// Reads clips from a safetensors file, as demo/train writes it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "demo/evaluate/detector.h"
#include "engine/formats/tensor_file.h"

namespace wan::demo {

// A mapped file that has a tensor "video": U8, [clips, frames, height, width, 3].
class ClipFile {
 public:
  // Error messages name the file. Fails with the errors of ReadSafetensors, and with
  // INVALID_ARGUMENT if the file has no such tensor or one without pixels.
  static absl::StatusOr<ClipFile> Open(const std::string& path);

  size_t size() const { return static_cast<size_t>(video_.shape[0]); }

  // Returns a clip; `index` must be below size(). The view is valid as long as the file or a copy
  // of it exists.
  ClipView operator[](size_t index) const;

  // "[2, 33, 256, 256, 3]"
  std::string ShapeText() const;

 private:
  ClipFile(std::shared_ptr<const void> mapping, StoredTensor video)
      : mapping_(std::move(mapping)), video_(std::move(video)) {}

  std::shared_ptr<const void> mapping_;
  StoredTensor video_;
};

}  // namespace wan::demo
