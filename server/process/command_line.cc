#include "server/process/command_line.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/api/file_problem.h"
#include "server/config/complete_config.h"
#include "server/config/settings.h"
#include "server/config/yaml_config.h"
#include "server/process/first_start.h"

namespace wan::server {
namespace {

// The usual port of servers with an OpenAI-style API.
constexpr int kDefaultHttpPort = 8000;

constexpr std::string_view kTruth = "true|false";

// Reads a file, or a pipe as in --config <(make-config).
absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // Opening a folder succeeds, but reading it fails. Do not read empty files, for which `<<` fails
  // as well.
  const bool empty = file.is_open() && file.peek() == EOF && !file.bad();
  if (!empty && !(text << file.rdbuf())) {
    const int failure = errno;
    const absl::Status why = CheckPath(path, PathKind::kFile);
    return absl::NotFoundError(
        why.ok() ? absl::StrCat("--config ", path, ": cannot be read: ", std::strerror(failure))
                 : absl::StrCat("--config ", why.message()));
  }
  const std::string content = text.str();
  const std::string foreign = NameForeignContent(
      std::string_view(content).substr(0, kForeignContentBytes), FileContent::kYaml);
  if (foreign.empty()) return content;
  return absl::InvalidArgumentError(absl::StrCat("--config ", path, ": ", foreign));
}

constexpr char kSeeHelp[] = " (wanserve --help lists the flags)";

// Returns a message that names, for each unknown flag, the flag that was probably meant. For
// arguments that are not flags, uses the message of CLI11.
std::string UnknownFlags(const std::vector<std::string>& arguments, const char* fallback) {
  std::vector<std::string> problems;
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--")) continue;
    const std::string flag = argument.substr(0, argument.find('='));
    const Setting* const nearest =
        NearestSetting(absl::StrReplaceAll(flag.substr(2), {{"-", "_"}}));
    problems.push_back(absl::StrCat(
        flag, " is not a flag",
        nearest == nullptr ? "" : absl::StrCat("; did you mean ", FlagOf(*nearest), "?")));
  }
  return problems.empty() ? std::string(fallback) : absl::StrJoin(problems, "\n");
}

// Whether the flag was given with an empty value, as in --insecure "$INSECURE", rather than without
// a value.
bool IsGivenEmpty(int argc, const char* const* argv, const std::string& flag) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i] == flag + "=") return true;
    if (argv[i] == flag && i + 1 < argc && *argv[i + 1] == '\0') return true;
  }
  return false;
}

// The values of the flags that were given; the keys are those of the settings.
using GivenFlags = std::map<std::string_view, std::vector<std::string>>;

// Sets the members of the configuration for which flags were given. Returns INVALID_ARGUMENT with a
// line for each flag that is wrong.
absl::Status ApplyFlags(GivenFlags& given, int argc, const char* const* argv,
                        ServerConfig& config) {
  std::vector<std::string> problems;
  for (const Setting& setting : Settings()) {
    std::vector<std::string>& values = given[setting.key];
    if (values.empty()) continue;
    // A boolean flag without a value means true: --insecure.
    if (setting.placeholder == kTruth && values.front().empty() &&
        !IsGivenEmpty(argc, argv, FlagOf(setting))) {
      values = {"true"};
    }
    // In a file an empty text means that the setting is unset, as --print-config writes it. On a
    // command line, an empty text probably comes from an empty shell variable, --auth-tokens
    // "$TOKENS", so refuse the flag.
    if (!IsMany(setting.form) && values.front().empty()) {
      problems.push_back(absl::StrCat(FlagOf(setting), " is empty; must be ",
                                      std::string(setting.placeholder), ", or leave the flag out"));
      continue;
    }
    const absl::Status status = Apply(setting, values, config);
    if (!status.ok()) {
      problems.push_back(absl::StrCat(FlagOf(setting), " ", std::string(status.message())));
    }
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv) {
  CLI::App app("wanserve: serves Wan2.2 video models over gRPC", "wanserve");
  app.set_help_flag("--help,-h", "print this help and exit");
  std::string config_file;
  bool print_config = false;
  const CLI::Option* const config =
      app.add_option("--config", config_file, "YAML file of settings; flags win over it")
          ->type_name("FILE");
  app.add_flag("--print-config", print_config,
               "print the effective settings as YAML that --config accepts, and exit");
  app.set_version_flag("--version", absl::StrCat("wanserve ", WAN_VERSION));

  // Keep the values as text, so that the table of settings parses them as it does for a file.
  GivenFlags given;
  for (const Setting& setting : Settings()) {
    std::vector<std::string>& values = given[setting.key];
    const bool many = IsMany(setting.form);
    CLI::Option* const option =
        many ? app.add_option(FlagOf(setting), values)
             : app.add_option_function<std::string>(
                   FlagOf(setting), [&values](const std::string& value) { values = {value}; });
    if (setting.placeholder == kTruth) option->expected(0, 1);
    option->description(std::string(setting.help))->type_name(std::string(setting.placeholder));
  }

  CommandLine command;
  command.config.http_listen = HostPort{"127.0.0.1", kDefaultHttpPort};
  command.config.http_listen_chosen = false;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    command.action = CommandLine::Action::kPrintText;
    command.text = app.help();
    return command;
  } catch (const CLI::CallForVersion& version) {
    command.action = CommandLine::Action::kPrintText;
    command.text = absl::StrCat(version.what(), "\n");
    return command;
  } catch (const CLI::ExtrasError& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(UnknownFlags(app.remaining(), error.what()), kSeeHelp));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat(error.what(), kSeeHelp));
  }

  if (config->count() > 0) {
    if (config_file.empty()) {
      return absl::InvalidArgumentError("--config is empty; must name a YAML file");
    }
    absl::StatusOr<std::string> text = ReadFile(config_file);
    if (!text.ok()) return text.status();
    if (absl::Status status = ApplyYaml(*text, config_file, command.config); !status.ok()) {
      return status;
    }
  }
  if (absl::Status status = ApplyFlags(given, argc, argv, command.config); !status.ok()) {
    return status;
  }
  if (command.config.data_dir.empty()) command.config.data_dir = DefaultDataDir();
  if (absl::Status status = Complete(command.config); !status.ok()) return status;
  if (print_config) command.action = CommandLine::Action::kPrintConfig;
  return command;
}

}  // namespace wan::server
