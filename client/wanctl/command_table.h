// wanctl's commands and flags as plain data, for shell completion and the check of
// docs/use/wanctl.md. The table is made from the same registration (command_registry.h) as the
// parser and the help.
#pragma once

#include <string>
#include <vector>

namespace wan::client {

struct FlagEntry {
  // The name, "--model", or "JOB" for a positional argument.
  std::string name;
  // The placeholder of the value in the help, for example "NAME" or "json|table"; empty for a flag
  // without a value.
  std::string value;
  std::string description;
  // All values that are allowed; empty if any text is.
  std::vector<std::string> choices;
  // Whether the flag may be given several times, or takes several values.
  bool repeatable = false;

  bool positional() const { return !name.starts_with("-"); }
};

struct CommandEntry {
  // The command's name; "wanctl" for the root.
  std::string name;
  std::string description;
  std::vector<FlagEntry> flags;
  std::vector<CommandEntry> commands;
};

// Returns the root with all commands below it, in the order of the help.
CommandEntry CommandTable();

}  // namespace wan::client
