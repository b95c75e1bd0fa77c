// Conversion between UTF-8 and code points.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan {

// Strict: INVALID_ARGUMENT with the byte offset for anything that is not well-formed UTF-8.
absl::StatusOr<std::u32string> DecodeUtf8(std::string_view utf8);

// `text` holds Unicode scalar values only.
std::string EncodeUtf8(std::u32string_view text);

}  // namespace wan
