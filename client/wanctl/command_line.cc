#include "client/wanctl/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <utility>

#include "client/wanctl/command_registry.h"
#include "client/wanctl/command_table.h"
#include "client/wanctl/completion.h"
#include "client/wanctl/exit_code.h"
#include "client/wanctl/foreign_flags.h"
#include "client/wanctl/suggestion.h"

namespace wan::client {
namespace {

constexpr char kOverview[] =
    R"(wanctl makes videos on a wanserve server ($WAN_SERVER, else localhost:50051).

  wanctl generate "A red kite over the sea"    make a video and wait for it
  wanctl quote "A red kite over the sea"       what it would take: seconds, memory
  wanctl submit "A red kite over the sea"      make it without waiting
  wanctl list                                  your jobs, the newest first
  wanctl watch last                            follow the newest; also get, cancel, download, report last
  wanctl models                                the models, and what they make unless told otherwise
  wanctl top                                   the server's jobs and devices, as they change

'wanctl --help' lists all commands, 'wanctl generate --help' the flags of one.
)";

constexpr char kRootFooter[] = R"(Exit codes:
  0 done   2 usage   3 rejected   4 failed   5 cancelled or past its deadline   6 unreachable
  7 different (replay)

Examples:
  wanctl generate "A red cat runs on the beach." -o cat.mp4
  wanctl --server gpu1:50051 list --state running
  wanctl report 4f1c9a52d07be6831a2c

'wanctl help COMMAND' lists the flags of a command.)";

constexpr char kCompletionFooter[] = R"(Examples:
  source <(wanctl completion bash)       in ~/.bashrc
  source <(wanctl completion zsh)        in ~/.zshrc, after compinit
  wanctl completion fish | source        in ~/.config/fish/config.fish)";

absl::StatusOr<Shell> ParseShell(std::string_view text) {
  if (text == "bash") return Shell::kBash;
  if (text == "zsh") return Shell::kZsh;
  if (text == "fish") return Shell::kFish;
  return absl::InvalidArgumentError("expects bash, zsh or fish, not '" + std::string(text) + "'");
}

// Returns the values of a placeholder such as "json|table"; empty for other placeholders.
std::vector<std::string> ChoicesOf(const std::string& value_name) {
  constexpr char kInWords[] = "abcdefghijklmnopqrstuvwxyz0123456789+|";
  std::vector<std::string> choices;
  if (value_name.find('|') == std::string::npos ||
      value_name.find_first_not_of(kInWords) != std::string::npos) {
    return choices;
  }
  std::istringstream words(value_name);
  for (std::string word; std::getline(words, word, '|');) choices.push_back(word);
  return choices;
}

CommandEntry Describe(const CLI::App& app) {
  CommandEntry entry{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    FlagEntry flag;
    flag.name = option->get_positional() ? option->get_name(/*positional=*/true)
                                         : "--" + option->get_lnames().front();
    if (option->get_items_expected_max() > 0) flag.value = option->get_type_name();
    flag.description = option->get_description();
    flag.choices = ChoicesOf(option->get_type_name());
    flag.repeatable = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    entry.flags.push_back(std::move(flag));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    entry.commands.push_back(Describe(*command));
  }
  return entry;
}

class Parser {
 public:
  explicit Parser(const std::string& default_server)
      : registry_(app_), default_server_(default_server) {
    app_.name("wanctl");
    app_.footer(kRootFooter);
    app_.set_version_flag("--version", "wanctl " WAN_VERSION, "Show the version and exit");
    app_.require_subcommand(1);
    app_.get_formatter()->column_width(34);
    RegisterRequestCommands(registry_);
    RegisterJobCommands(registry_);
    RegisterReportCommands(registry_);
    RegisterServerCommands(registry_);
    AddCompletion();
    AddHelp();
  }

  std::variant<Options, EarlyExit> Parse(const std::vector<std::string>& args) {
    if (args.empty()) return EarlyExit{kExitDone, kOverview, ""};
    try {
      app_.parse(Prepared(args));
      std::variant<Options, EarlyExit> taken = registry_.Take();
      if (auto* options = std::get_if<Options>(&taken)) FillInServer(options->global.server);
      return taken;
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0) return UsageError(error.what());
      std::ostringstream out;
      app_.exit(error, out, out);
      return EarlyExit{kExitDone, out.str(), ""};
    }
  }

  CommandEntry Table() const { return Describe(app_); }

 private:
  void AddHelp() {
    CLI::App& help = registry_.AddLocal({"help", "Show the flags of a command"}, [this] {
      const CLI::App* app = &app_;
      for (const std::string& word : help_words_) {
        const std::vector<const CLI::App*> found = app->get_subcommands(
            [&word](const CLI::App* command) { return command->get_name() == word; });
        if (found.empty()) throw CLI::ValidationError(UnknownCommand(*app, word));
        app = found.front();
      }
      // Do not call App::help, which would show the help of the command that was parsed, 'help'.
      const std::string name = app == &app_ ? "wanctl" : "wanctl " + CommandOf(*app);
      return EarlyExit{kExitDone,
                       app_.get_formatter()->make_help(app, name, CLI::AppFormatMode::Normal), ""};
    });
    help.add_option("COMMAND", help_words_, "Command, for example 'generate' or 'models load'")
        ->type_name("");
  }

  void AddCompletion() {
    CLI::App& completion = registry_.AddLocal(
        {"completion", "Print a script with which a shell completes wanctl's command lines",
         kCompletionFooter},
        [this] {
          return EarlyExit{kExitDone, CompletionScript(shell_, Table()), ""};
        });
    AddValue<Shell>(completion, "SHELL", "bash|zsh|fish", "Shell that reads the script", ParseShell,
                    shell_)
        ->required();
  }

  void FillInServer(std::string& server) const {
    if (!server.empty()) return;
    absl::StatusOr<std::string> parsed = ParseServer(default_server_);
    if (!parsed.ok()) {
      throw CLI::ValidationError("WAN_SERVER " + std::string(parsed.status().message()));
    }
    server = *std::move(parsed);
  }

  // Returns a usage error. Reports unknown flags first: if a flag is misspelt, CLI11 would report
  // that it is missing.
  EarlyExit UsageError(std::string what) const {
    const CLI::App* command = &app_;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
    std::vector<std::string> rest = app_.remaining(/*recurse=*/true);
    std::erase(rest, "--");
    const auto flag = std::find_if(rest.begin(), rest.end(), [](const std::string& word) {
      return word.size() > 1 && word.front() == '-';
    });
    const bool has_commands = !Describe(*command).commands.empty();
    if (!rest.empty() && flag != rest.begin() && has_commands) {
      what = UnknownCommand(*command, rest.front());
    } else if (flag != rest.end()) {
      what = UnknownFlag(*command, flag->substr(0, flag->find('=')));
    } else if (!rest.empty()) {
      what = CommandOf(*command) + " does not expect '" + rest.front() + "'";
    }
    const std::string next =
        command == &app_ || CommandOf(*command) == "help"
            ? "'wanctl --help' lists the commands, 'wanctl COMMAND --help' its flags."
            : "'wanctl " + CommandOf(*command) + " --help' says what it takes.";
    return {kExitUsage, "", "wanctl: " + what + "\n" + next + "\n"};
  }

  // Returns the names that lead to the command, "models load"; "wanctl" for the root.
  static std::string CommandOf(const CLI::App& app) {
    const CLI::App* const parent = app.get_parent();
    if (parent == nullptr || parent->get_parent() == nullptr) return app.get_name();
    return CommandOf(*parent) + " " + app.get_name();
  }

  static std::string UnknownCommand(const CLI::App& app, const std::string& word) {
    std::vector<std::string> names;
    for (const CommandEntry& command : Describe(app).commands) names.push_back(command.name);
    return "unknown command " + (app.get_parent() == nullptr ? word : CommandOf(app) + " " + word) +
           DidYouMean(word, names);
  }

  std::string UnknownFlag(const CLI::App& app, const std::string& word) const {
    std::vector<std::string> names;
    for (const FlagEntry& flag : Describe(app).flags) {
      if (!flag.positional()) names.push_back(flag.name);
    }
    std::string text = CommandOf(app) + " has no flag " + word;
    const std::string hint = HintForForeignFlag(word);
    if (!hint.empty()) return text + "; " + hint;
    const std::string meant = DidYouMean(word, names);
    if (!meant.empty()) return text + meant;
    // The unknown flag may be a flag of another command.
    for (const CommandEntry& command : Table().commands) {
      for (const FlagEntry& flag : command.flags) {
        if (flag.name == word) return text + "; " + command.name + " has it";
      }
    }
    return text;
  }

  // Returns the arguments in reverse order, as CLI11 expects. Splits "--name=" into two arguments,
  // because otherwise CLI11 takes the next argument as the value.
  static std::vector<std::string> Prepared(const std::vector<std::string>& args) {
    std::vector<std::string> prepared;
    for (const std::string& arg : args) {
      if (arg.starts_with("--") && arg.find('=') == arg.size() - 1) {
        prepared.push_back(arg.substr(0, arg.size() - 1));
        prepared.emplace_back();
      } else {
        prepared.push_back(arg);
      }
    }
    std::reverse(prepared.begin(), prepared.end());
    return prepared;
  }

  CLI::App app_{"Makes videos on a wanserve server and manages its jobs and models."};
  CommandRegistry registry_;
  const std::string default_server_;
  std::vector<std::string> help_words_;
  Shell shell_ = Shell::kBash;
};

}  // namespace

std::variant<Options, EarlyExit> ParseCommandLine(const std::vector<std::string>& args,
                                                  const std::string& default_server) {
  return Parser(default_server).Parse(args);
}

CommandEntry CommandTable() { return Parser("").Table(); }

}  // namespace wan::client
