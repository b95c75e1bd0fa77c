// The tensors of one file, under the names that the file uses. Every reader of a file format
// returns them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/formats/dtype.h"
#include "engine/formats/mapped_file.h"

namespace wan {

struct StoredTensor {
  std::string name;  // as in the file; unique there
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // contiguous; exactly as many as shape and dtype need
};

struct TensorFile {
  std::string path;
  std::shared_ptr<const void> mapping;  // keeps every StoredTensor::bytes valid
  const MappedFile* file = nullptr;     // the file that holds these bytes; `mapping` keeps it
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> metadata;  // the header's __metadata__; safetensors only
};

// The files of one component. A file with a problem is left out, and its problem is listed.
struct TensorFiles {
  std::vector<TensorFile> files;
  std::vector<absl::Status> problems;
};

}  // namespace wan
