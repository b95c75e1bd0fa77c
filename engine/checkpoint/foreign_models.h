// Knows files of other models, and of parts that are not components, by the names of their tensors.
#pragma once

#include <functional>
#include <set>
#include <string>

namespace wan {

// Recognises files that the engine cannot run as a component. Returns what the file is and what
// helps, for example "is a LoRA; register it with --lora". Returns an empty text for all other
// files. Thread-safe.
std::string NameForeignModel(const std::set<std::string, std::less<>>& names);

}  // namespace wan
