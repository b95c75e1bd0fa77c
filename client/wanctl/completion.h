// Generates shell completion from the table of commands. All functions are pure.
#pragma once

#include <string>

#include "client/wanctl/command_table.h"

namespace wan::client {

enum class Shell { kBash, kZsh, kFish };

// Returns a script for the shell to source. The script completes commands, flags, values of flags
// that allow only certain words, and local files; it calls no server.
std::string CompletionScript(Shell shell, const CommandEntry& root);

}  // namespace wan::client
