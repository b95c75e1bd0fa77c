#include "engine/checkpoint/weight_source.h"

#include <cstring>

namespace wan {

absl::Status TensorBytes::Read(size_t offset, std::span<std::byte> out) const {
  const std::span<const std::byte> part = bytes.subspan(offset, out.size());
  if (file != nullptr) return file->Read(part, out.data());
  std::memcpy(out.data(), part.data(), part.size());
  return absl::OkStatus();
}

}  // namespace wan
