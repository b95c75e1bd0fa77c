// Checks and repairs of UTF-8 text. Protobuf cannot read back a `string` that is not UTF-8, so
// every text that enters the process is checked with IsUtf8, and texts that only inform, such as
// file names and errors of libraries, pass through ToUtf8.
#pragma once

#include <string>
#include <string_view>

namespace wan {

// Returns whether `text` is well-formed UTF-8. Takes no memory.
bool IsUtf8(std::string_view text);

// Returns `text` with U+FFFD in the place of every byte that belongs to no well-formed character.
std::string ToUtf8(std::string_view text);

}  // namespace wan
