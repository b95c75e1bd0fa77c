// Writes files in the safetensors format: the length of the header (8 bytes), the header in JSON,
// the bytes of the tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace wan {

struct SafetensorsTensor {
  std::string name;
  std::string dtype;  // as the format spells it: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // in row-major order, little endian
};

// Creates the file `path`, or overwrites it, with the tensors in the given order. INVALID_ARGUMENT,
// naming the tensor, if a dtype is unknown, if the number of bytes does not fit the shape, or if a
// name is empty, used twice, reserved ("__metadata__") or not UTF-8. absl::ErrnoToStatus maps
// errors of the system (a full disk is RESOURCE_EXHAUSTED), and the message names the path. After
// an error, an incomplete file may be left. Any thread may call the function.
absl::Status WriteSafetensors(const std::string& path,
                              const std::vector<SafetensorsTensor>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace wan
