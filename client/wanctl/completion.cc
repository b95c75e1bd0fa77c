#include "client/wanctl/completion.h"

#include <functional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace wan::client {
namespace {

// The kinds of words that can complete a flag's value or a positional argument.
enum class Source { kNothing, kWords, kFiles, kFolders };

Source SourceOf(const FlagEntry& flag) {
  if (!flag.choices.empty()) return Source::kWords;
  if (flag.value == "FILE") return Source::kFiles;
  if (flag.value == "DIR") return Source::kFolders;
  return Source::kNothing;
}

// Calls `visit` for a command and all commands below it, each with the names that lead to it
// ("models load"; "" for the root).
void Walk(const CommandEntry& command, const std::string& path,
          const std::function<void(const CommandEntry&, const std::string&)>& visit) {
  visit(command, path);
  for (const CommandEntry& below : command.commands) {
    Walk(below, path.empty() ? below.name : absl::StrCat(path, " ", below.name), visit);
  }
}

std::vector<std::string> NamesOf(const std::vector<CommandEntry>& commands) {
  std::vector<std::string> names;
  for (const CommandEntry& command : commands) names.push_back(command.name);
  return names;
}

// Returns the text in single quotes, as all three shells read it; for fish also doubles
// backslashes.
std::string Quoted(const std::string& text, bool fish = false) {
  if (fish)
    return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

constexpr char kBashHead[] = R"(# Completion of wanctl for bash; made by 'wanctl completion bash'.
_wanctl() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${COMP_WORDS[i]} in
)";

constexpr char kBashTail[] = R"(  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _wanctl wanctl
)";

// The script finds the command from the words before the cursor; the last of them may be a flag
// that needs a value.
std::string BashScript(const CommandEntry& root) {
  std::set<std::string> with_value;
  std::vector<std::string> paths;
  std::string values, words;
  Walk(root, "", [&](const CommandEntry& command, const std::string& path) {
    if (!path.empty()) paths.push_back(Quoted(path));
    std::vector<std::string> offered = NamesOf(command.commands);
    for (const FlagEntry& flag : command.flags) {
      if (flag.positional()) {
        const std::vector<std::string> commands = NamesOf(root.commands);
        const auto& more = flag.name == "COMMAND" ? commands : flag.choices;
        offered.insert(offered.end(), more.begin(), more.end());
        continue;
      }
      offered.push_back(flag.name);
      if (flag.value.empty()) continue;
      with_value.insert(flag.name);
      const Source source = SourceOf(flag);
      if (source == Source::kNothing) continue;
      const std::string generate =
          source == Source::kWords   ? absl::StrCat("-W ", Quoted(absl::StrJoin(flag.choices, " ")))
          : source == Source::kFiles ? "-f"
                                     : "-d";
      absl::StrAppend(&values, "    ", Quoted(absl::StrCat(path, ":", flag.name)),
                      ") COMPREPLY=($(compgen ", generate, " -- \"$word\")); return ;;\n");
    }
    absl::StrAppend(&words, "    ", Quoted(path), ") words=", Quoted(absl::StrJoin(offered, " ")),
                    " ;;\n");
  });
  const std::string flags = absl::StrJoin(with_value, "|");
  return absl::StrCat(
      kBashHead, "      ", flags, ") ((i++)) ;;\n      -*) ;;\n",
      "      *)\n        case \"${command:+$command }${COMP_WORDS[i]}\" in\n", "          ",
      absl::StrJoin(paths, "|"), ") command=\"${command:+$command }${COMP_WORDS[i]}\" ;;\n",
      "        esac ;;\n    esac\n  done\n  COMPREPLY=()\n", "  case \"$command:$previous\" in\n",
      values, "    *:", absl::StrJoin(with_value, "|*:"), ") return ;;\n  esac\n",
      "  case $command in\n", words, kBashTail);
}

// Returns one argument specification for zsh's _arguments.
std::string ZshArgument(const FlagEntry& flag, const std::string& command_names) {
  const auto escaped = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
  };
  std::string action = " ";
  switch (SourceOf(flag)) {
    case Source::kWords:
      action = absl::StrCat("(", absl::StrJoin(flag.choices, " "), ")");
      break;
    case Source::kFiles:
      action = "_files";
      break;
    case Source::kFolders:
      action = "_files -/";
      break;
    case Source::kNothing:
      break;
  }
  if (flag.positional()) {
    if (flag.name == "COMMAND") action = absl::StrCat("(", command_names, ")");
    return Quoted(absl::StrCat(flag.repeatable ? "*" : "", ":", escaped(flag.name), ":", action));
  }
  return Quoted(
      absl::StrCat(flag.repeatable ? "*" : "", flag.name, "[", escaped(flag.description), "]",
                   flag.value.empty() ? "" : absl::StrCat(":", escaped(flag.value), ":", action)));
}

// The script has a function for each command, which calls the function of the command nested in it.
std::string ZshScript(const CommandEntry& root) {
  std::string script =
      "#compdef wanctl\n# Completion of wanctl for zsh; made by 'wanctl completion zsh'.\n";
  const std::string command_names = absl::StrJoin(NamesOf(root.commands), " ");
  Walk(root, "", [&](const CommandEntry& command, const std::string& path) {
    const std::string function =
        absl::StrCat("_wanctl", path.empty() ? "" : "_", absl::StrReplaceAll(path, {{" ", "_"}}));
    absl::StrAppend(&script, function, "() {\n");
    if (!command.commands.empty()) {
      absl::StrAppend(&script, "  local state\n  local -a commands=(\n");
      for (const CommandEntry& below : command.commands) {
        absl::StrAppend(&script, "    ", Quoted(absl::StrCat(below.name, ":", below.description)),
                        "\n");
      }
      absl::StrAppend(&script, "  )\n");
    }
    absl::StrAppend(&script, "  _arguments ", command.commands.empty() ? "" : "-C ", "\\\n");
    for (const FlagEntry& flag : command.flags) {
      absl::StrAppend(&script, "    ", ZshArgument(flag, command_names), " \\\n");
    }
    if (command.commands.empty()) {
      absl::StrAppend(&script, "    && return\n}\n");
      return;
    }
    absl::StrAppend(
        &script,
        "    '1: :->command' '*:: :->rest' && return\n  case $state in\n"
        "    command) _describe command commands ;;\n    rest)\n      case $words[1] in\n");
    for (const CommandEntry& below : command.commands) {
      absl::StrAppend(&script, "        ", below.name, ") ", function, "_", below.name, " ;;\n");
    }
    absl::StrAppend(&script, "      esac ;;\n  esac\n}\n");
  });
  return absl::StrCat(
      script,
      "if [ \"$funcstack[1]\" = _wanctl ]; then _wanctl \"$@\"; else compdef _wanctl "
      "wanctl; fi\n");
}

std::string FishScript(const CommandEntry& root) {
  std::string script =
      "# Completion of wanctl for fish; made by 'wanctl completion fish'.\ncomplete -c wanctl -f\n";
  Walk(root, "", [&](const CommandEntry& command, const std::string& path) {
    // A condition for fish: the words of this command have been typed, and those of no nested
    // command.
    std::string here;
    if (!path.empty()) {
      here = absl::StrCat("__fish_seen_subcommand_from ",
                          absl::StrReplaceAll(path, {{" ", "; and __fish_seen_subcommand_from "}}));
    }
    std::string without = "__fish_use_subcommand";
    if (!path.empty()) {
      without = absl::StrCat(here, "; and not __fish_seen_subcommand_from ",
                             absl::StrJoin(NamesOf(command.commands), " "));
    }
    for (const CommandEntry& below : command.commands) {
      absl::StrAppend(&script, "complete -c wanctl -n ", Quoted(without, true), " -a ", below.name,
                      " -d ", Quoted(below.description, true), "\n");
    }
    for (const FlagEntry& flag : command.flags) {
      std::string line = "complete -c wanctl";
      if (!here.empty()) absl::StrAppend(&line, " -n ", Quoted(here, true));
      if (!flag.positional()) absl::StrAppend(&line, " -l ", flag.name.substr(2));
      std::vector<std::string> choices = flag.choices;
      if (flag.positional() && flag.name == "COMMAND") choices = NamesOf(root.commands);
      if (!choices.empty()) {
        absl::StrAppend(&line, flag.positional() ? "" : " -x", " -a ",
                        Quoted(absl::StrJoin(choices, " "), true));
      } else if (flag.positional()) {
        continue;
      } else if (SourceOf(flag) == Source::kFiles) {
        line += " -r -F";
      } else if (SourceOf(flag) == Source::kFolders) {
        line += " -x -a '(__fish_complete_directories)'";
      } else if (!flag.value.empty()) {
        line += " -x";
      }
      absl::StrAppend(&script, line, " -d ", Quoted(flag.description, true), "\n");
    }
  });
  return script;
}

}  // namespace

std::string CompletionScript(Shell shell, const CommandEntry& root) {
  switch (shell) {
    case Shell::kBash:
      return BashScript(root);
    case Shell::kZsh:
      return ZshScript(root);
    case Shell::kFish:
      return FishScript(root);
  }
  return "";
}

}  // namespace wan::client
