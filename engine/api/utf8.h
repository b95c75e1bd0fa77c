// Checks and repairs UTF-8 text. Protobuf cannot parse a `string` that is not UTF-8. So IsUtf8
// checks every text that enters the process, and ToUtf8 repairs texts that are only informative,
// such as file names and the errors of libraries.
#pragma once

#include <string>
#include <string_view>

namespace wan {

// Returns whether `text` is well-formed UTF-8. The function allocates no memory.
bool IsUtf8(std::string_view text);

// Returns `text`, in which U+FFFD replaces every byte that is not part of a well-formed character.
std::string ToUtf8(std::string_view text);

}  // namespace wan
