// Writes the .safetensors format (an 8-byte header length, a JSON header, the tensors' bytes).
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
  std::span<const std::byte> bytes;  // row-major, little-endian
};

// Creates (or overwrites) `path`; tensors lie in the order given. INVALID_ARGUMENT, naming the
// tensor, for an unknown dtype, a size that is not the shape's, a name that is empty, twice there,
// reserved ("__metadata__") or not UTF-8; system errors as absl::ErrnoToStatus maps them
// (RESOURCE_EXHAUSTED for a full disk), naming the path.
absl::Status WriteSafetensors(const std::string& path,
                              const std::vector<SafetensorsTensor>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace wan
