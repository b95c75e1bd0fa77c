// The tensors of one file, under the names that the file gives them. The readers of all formats
// return a TensorFile.
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
#include "engine/formats/tensor_decoder.h"

namespace wan {

struct StoredTensor {
  std::string name;  // name of the tensor in the file, where it is unique
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // contiguous; as many bytes as shape and dtype need
  // If set, `bytes` are codes from which the decoder computes values of type `dtype`. Null if the
  // bytes are the values.
  std::shared_ptr<const TensorDecoder> decoder = nullptr;
};

struct TensorFile {
  std::string path;
  std::shared_ptr<const void> mapping;  // keeps the memory of all bytes valid
  const MappedFile* file = nullptr;     // the file that `mapping` maps
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> metadata;  // the header's texts, if it has any
};

// The files of one component of a model. If a file has a problem, it is left out, and the problem
// is listed.
struct TensorFiles {
  std::vector<TensorFile> files;
  std::vector<absl::Status> problems;
};

}  // namespace wan
