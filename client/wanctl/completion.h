// Generates shell completion from the table of commands. All functions are pure.
#pragma once

#include <string>

#include "client/wanctl/command_table.h"

namespace wan::client {

enum class Shell { kBash, kZsh, kFish };

// Returns a script for the shell to source. It completes commands, flags, values of flags with a
// fixed set, and local files; it calls no server.
std::string CompletionScript(Shell shell, const CommandEntry& root);

}  // namespace wan::client
