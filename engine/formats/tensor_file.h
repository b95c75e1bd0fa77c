// The tensors of one file under the file's own names; every format's reader returns them.
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
  std::string name;  // name in the file; unique there
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // contiguous; as many as shape and dtype need
};

struct TensorFile {
  std::string path;
  std::shared_ptr<const void> mapping;  // keeps all bytes valid
  const MappedFile* file = nullptr;     // the mapped file, which `mapping` keeps alive
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> metadata;  // the header's __metadata__; safetensors only
};

// The files of one component. A file with a problem is left out and its problem listed.
struct TensorFiles {
  std::vector<TensorFile> files;
  std::vector<absl::Status> problems;
};

}  // namespace wan
