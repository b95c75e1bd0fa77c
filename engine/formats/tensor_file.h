// What a reader of a file format hands over: the tensors of one file, under the names it uses.
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
  std::string name;  // as the file has it; unique in the file
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // contiguous; as many as shape and dtype ask for
};

struct TensorFile {
  std::string path;
  std::shared_ptr<const void> mapping;  // keeps every StoredTensor::bytes valid
  const MappedFile* file = nullptr;     // that these bytes are parts of; `mapping` keeps it
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> metadata;  // what the writer said besides; safetensors only
};

// The files of one component. Files with problems are left out.
struct TensorFiles {
  std::vector<TensorFile> files;
  std::vector<absl::Status> problems;
};

}  // namespace wan
