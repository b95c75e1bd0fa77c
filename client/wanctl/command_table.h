// wanctl's commands and flags as plain data, for shell completion and the check of
// docs/use/wanctl.md. Made from the same registration (command_registry.h) as parser and help.
#pragma once

#include <string>
#include <vector>

namespace wan::client {

struct FlagEntry {
  // "--model", or "JOB" for a positional argument.
  std::string name;
  // The value's placeholder in help, for example "NAME" or "json|table"; empty for a flag without a
  // value.
  std::string value;
  std::string description;
  // All allowed values; empty for free text.
  std::vector<std::string> choices;
  // Whether it may be given several times, or takes several values.
  bool repeatable = false;

  bool positional() const { return !name.starts_with("-"); }
};

struct CommandEntry {
  // "wanctl" for the root.
  std::string name;
  std::string description;
  std::vector<FlagEntry> flags;
  std::vector<CommandEntry> commands;
};

// Returns the root with all commands, in the order of the help.
CommandEntry CommandTable();

}  // namespace wan::client
