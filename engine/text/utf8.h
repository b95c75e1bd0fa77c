// Converts between UTF-8 and code points. All functions are thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan {

// Decodes strictly: if the text is not well-formed UTF-8, INVALID_ARGUMENT names the offset of the
// first wrong byte.
absl::StatusOr<std::u32string> DecodeUtf8(std::string_view utf8);

// Encodes `text`, which may contain only Unicode scalar values.
std::string EncodeUtf8(std::u32string_view text);

}  // namespace wan
