// Flags of other programs that make videos with Wan2.2, for people who come from them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::client {

// Returns what has the place of the flag here, as a sentence: "generate.py's --frame_num is
// --frames here". Knows the flags of upstream's generate.py, of scripts around it, and the
// arguments of diffusers' pipelines, each with '-' or '_' between its words. Empty for any other
// text. Pure.
std::string HintForForeignFlag(std::string_view flag);

// The names that it knows, in words with '_' between them. docs/use/coming-from.md has each of
// them.
std::vector<std::string_view> ForeignFlags();

}  // namespace wan::client
