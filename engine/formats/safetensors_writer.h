// Writes the safetensors format: header length (8 bytes), JSON header, tensor bytes.
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
  std::string dtype;  // in the format's spelling: F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // row-major, little-endian
};

// Creates or overwrites `path` with the tensors in the given order. INVALID_ARGUMENT, naming the
// tensor, if a dtype is unknown, if the number of bytes does not fit the shape, or if a name is
// empty, used twice, reserved ("__metadata__") or not UTF-8. System errors are mapped by
// absl::ErrnoToStatus (a full disk is RESOURCE_EXHAUSTED) and name the path; a partial file may be
// left. Any thread may call it.
absl::Status WriteSafetensors(const std::string& path,
                              const std::vector<SafetensorsTensor>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace wan
