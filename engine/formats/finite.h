// Searches the bytes of a tensor for NaN and infinity.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "engine/formats/dtype.h"

namespace wan {

// Returns the index of the first element that is NaN or infinite. Returns nullopt if there is none,
// or if `dtype` is not F64, F32, F16 or BF16. `bytes` may have any alignment. The search takes
// about 0.1 s per gigabyte. Thread-safe.
std::optional<size_t> FirstNotFinite(std::span<const std::byte> bytes, DType dtype);

}  // namespace wan
