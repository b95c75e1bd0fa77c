// Registers wanctl's commands. To add a command, write its struct in options.h, its function Run in
// commands.h, and its registration in one of the functions at the end of this file. Only
// command_line.cc and the files *_flags.cc include this header, because compiling CLI11 takes
// seconds.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "client/wanctl/command_line.h"
#include "client/wanctl/options.h"
#include "proto/enum_words.h"

namespace wan::client {

// A command that is being registered: add flags to `app` that store their values into `command`.
// `app` and `command` live as long as the registry.
template <typename C>
struct Registered {
  CLI::App& app;
  C& command;
};

struct CommandHelp {
  std::string name;
  std::string description;
  // Text that the help prints below the flags.
  std::string footer = "";
  // The text that explains --timeout in the help of this command.
  std::string timeout = "End the command after this time, whatever it waits for";
  // Whether the command adds a flag --format of its own; otherwise --format is json or table.
  bool own_format = false;
};

class CommandRegistry {
 public:
  // `app` must be empty and outlive this object.
  explicit CommandRegistry(CLI::App& app);
  CommandRegistry(const CommandRegistry&) = delete;
  CommandRegistry& operator=(const CommandRegistry&) = delete;

  CLI::App& root() { return app_; }
  GlobalFlags& global() { return options_.global; }

  // Adds a command below `parent`, with the global flags. `finish` is called after parsing; it may
  // change the command, or throw CLI::ValidationError.
  template <typename C>
  Registered<C> Add(CLI::App& parent, const CommandHelp& help,
                    std::function<void(C&)> finish = nullptr) {
    CLI::App& app = AddSubcommand(parent, help);
    AddGlobalFlags(app, help);
    auto command = std::make_shared<C>();
    Choose(app, [command, finish = std::move(finish)]() -> Command {
      if (finish) finish(*command);
      return *command;
    });
    return {app, *command};
  }

  // Adds a command below the root, with the global flags.
  template <typename C>
  Registered<C> Add(const CommandHelp& help, std::function<void(C&)> finish = nullptr) {
    return Add<C>(app_, help, std::move(finish));
  }

  // Adds a command that calls no server and has no global flags; wanctl prints the result of
  // `answer`.
  CLI::App& AddLocal(const CommandHelp& help, std::function<EarlyExit()> answer);

  // Returns the command that was parsed. Call Take when CLI11 has parsed the command line. The
  // function may throw CLI::ValidationError.
  std::variant<Options, EarlyExit> Take();

 private:
  static CLI::App& AddSubcommand(CLI::App& parent, const CommandHelp& help);
  void AddGlobalFlags(CLI::App& app, const CommandHelp& help);
  void Choose(CLI::App& app, std::function<Command()> command);

  CLI::App& app_;
  Options options_;
  std::function<Command()> chosen_;
  std::function<EarlyExit()> local_;
};

// Returns the words of an enum for the `value_name` of an option: "unipc|dpm++|euler".
template <typename Enum>
std::string Alternatives() {
  return absl::StrJoin(WordsOf<Enum>(), "|");
}

// Adds an option. The option calls `parse` for each value, and `store` with the result. The flag
// takes one value and may be given once, unless Repeatable or Several is called for it. If
// `value_name` consists of lower-case words with '|' between them, these are all values, for shell
// completion.
template <typename T>
CLI::Option* AddValue(CLI::App& app, const std::string& name, const std::string& value_name,
                      const std::string& description, absl::StatusOr<T> (*parse)(std::string_view),
                      std::function<void(T)> store) {
  // The name of a positional argument begins without dashes; "-o,--output" is known by its last
  // name.
  const std::string shown =
      name.starts_with("-") ? name.substr(name.rfind(',') + 1) : name + " argument";
  auto take = [parse, store = std::move(store), shown](const CLI::results_t& texts) {
    for (const std::string& text : texts) {
      absl::StatusOr<T> value = parse(text);
      if (!value.ok()) {
        throw CLI::ValidationError(shown + " " + std::string(value.status().message()));
      }
      store(*std::move(value));
    }
    return true;
  };
  return app.add_option(name, CLI::callback_t(std::move(take)), description)->type_name(value_name);
}

// Like AddOption with `store`, but assigns the parsed value to `value`.
template <typename T>
CLI::Option* AddValue(CLI::App& app, const std::string& name, const std::string& value_name,
                      const std::string& description, absl::StatusOr<T> (*parse)(std::string_view),
                      T& value) {
  return AddValue<T>(app, name, value_name, description, parse,
                     [&value](T parsed) { value = std::move(parsed); });
}

// Allows giving the option several times, with one value each.
CLI::Option* Repeatable(CLI::Option* option);

// Makes the option take all values up to the next flag, and allows giving it several times.
CLI::Option* Several(CLI::Option* option);

// Adds the required positional argument JOB.
void AddJob(CLI::App& app, std::string& job);

// AddOutputs adds the flag --output, AddPreviewDir the flag --preview-dir.
CLI::Option* AddOutputs(CLI::App& app, std::vector<OutputFile>& outputs,
                        const std::string& description);
void AddPreviewDir(CLI::App& app, std::string& folder);

// Defined in request_flags.cc: generate, submit, quote.
void RegisterRequestCommands(CommandRegistry& registry);
// Defined in job_flags.cc: watch, get, list, cancel, delete, download, receipt, replay.
void RegisterJobCommands(CommandRegistry& registry);
// Defined in report_flags.cc: report, bench.
void RegisterReportCommands(CommandRegistry& registry);
// Defined in server_flags.cc: models, devices, info, top, health, usage, drain, undrain.
void RegisterServerCommands(CommandRegistry& registry);

}  // namespace wan::client
