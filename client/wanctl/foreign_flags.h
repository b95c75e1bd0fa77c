// Flags of other programs for Wan2.2, translated for their users.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::client {

// Returns a sentence with wanctl's equivalent of the flag: "generate.py's --frame_num is --frames
// here". Knows the flags of upstream's generate.py, of scripts around it, and the arguments of
// diffusers' pipelines, with '-' or '_' between words. Returns an empty text for any other flag.
// Pure.
std::string HintForForeignFlag(std::string_view flag);

// Returns all known names, words joined by '_'. docs/use/coming-from.md lists each of them.
std::vector<std::string_view> ForeignFlags();

}  // namespace wan::client
