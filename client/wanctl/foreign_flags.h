// Translates flags of other programs for Wan2.2.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::client {

// Returns a sentence that names wanctl's equivalent of the flag, such as "generate.py's --frame_num
// is --frames here"; empty for unknown flags. Knows the flags of Wan's generate.py and scripts
// around it, and arguments of diffusers' pipelines, with '-' or '_' between words. A pure function.
std::string HintForForeignFlag(std::string_view flag);

// Returns all flags that HintForForeignFlag knows, with words joined by '_'.
// docs/use/coming-from.md lists them.
std::vector<std::string_view> ForeignFlags();

}  // namespace wan::client
