// Shell completion, generated from the table of commands and flags. All functions are pure.
#pragma once

#include <string>

#include "client/wanctl/command_table.h"

namespace wan::client {

enum class Shell { kBash, kZsh, kFish };

// Returns a script for the shell to source. It completes commands, flags, the values of flags that
// have a fixed set of them, and the names of local files; it calls no server.
std::string CompletionScript(Shell shell, const CommandEntry& root);

}  // namespace wan::client
