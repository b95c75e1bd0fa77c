// Checks and repairs UTF-8 text. Protobuf cannot parse a `string` that is not UTF-8, so every text
// that enters the process is checked with IsUtf8, and texts that are only informative, such as file
// names and libraries' errors, pass through ToUtf8.
#pragma once

#include <string>
#include <string_view>

namespace wan {

// Returns whether `text` is well-formed UTF-8. Allocates no memory.
bool IsUtf8(std::string_view text);

// Returns `text` with every byte outside a well-formed character replaced by U+FFFD.
std::string ToUtf8(std::string_view text);

}  // namespace wan
