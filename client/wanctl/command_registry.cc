#include "client/wanctl/command_registry.h"

#include <algorithm>

namespace wan::client {

CommandRegistry::CommandRegistry(CLI::App& app) : app_(app) { AddGlobalFlags(app_, {}); }

CLI::App& CommandRegistry::AddLocal(const CommandHelp& help, std::function<EarlyExit()> answer) {
  CLI::App& app = AddSubcommand(app_, help);
  app.callback([this, answer = std::move(answer)] { local_ = answer; });
  return app;
}

std::variant<Options, EarlyExit> CommandRegistry::Take() {
  if (local_) return local_();
  options_.command = chosen_();
  if (options_.global.timeout <= absl::ZeroDuration()) {
    throw CLI::ValidationError("--timeout expects seconds above 0; only drain takes 0");
  }
  return std::move(options_);
}

CLI::App& CommandRegistry::AddSubcommand(CLI::App& parent, const CommandHelp& help) {
  CLI::App* const app = parent.add_subcommand(help.name, help.description);
  app->footer(help.footer);
  return *app;
}

void CommandRegistry::Choose(CLI::App& app, std::function<Command()> command) {
  // Keep the first command: CLI11 calls the callback of a nested command before that of its parent.
  app.callback([this, command = std::move(command)] {
    if (!chosen_) chosen_ = command;
  });
}

// Adds the global flags, which may be given before or after the command.
void CommandRegistry::AddGlobalFlags(CLI::App& app, const CommandHelp& help) {
  GlobalFlags& global = options_.global;
  const auto connection = [](CLI::Option* option) { option->group("Connection"); };
  connection(AddValue<std::string>(app, "--server", "HOST:PORT",
                                   "Server to call (default: $WAN_SERVER, else localhost:50051)",
                                   ParseServer, global.server));
  connection(AddValue<absl::Duration>(app, "--timeout", "SECONDS", help.timeout, ParseSecondsOrZero,
                                      global.timeout));
  connection(app.add_flag_callback(
      "--tls", [&] { global.tls = true; }, "Speak TLS, and trust the machine's authorities"));
  const auto add_file = [&](const std::string& name, const std::string& description,
                            std::string& file) {
    connection(AddValue<std::string>(app, name, "FILE", description, ParseNotEmpty, file));
  };
  add_file("--tls-ca", "Speak TLS, and trust the authorities of this PEM file", global.tls_ca);
  add_file("--tls-cert", "Client certificate, a PEM file", global.tls_cert);
  add_file("--tls-key", "Key of the client certificate, a PEM file", global.tls_key);
  add_file("--token-file", "File that has the token (default: $WAN_TOKEN)", global.token_file);
  connection(app.add_flag_callback(
      "--allow-plaintext-token", [&] { global.allow_plaintext_token = true; },
      "Send the token without TLS to another machine, where others may read it"));
  connection(app.add_flag_callback(
      "--json", [&] { global.json = true; },
      "Print every message of the server as one line of JSON"));
  if (help.own_format) return;
  connection(AddValue<bool>(app, "--format", "json|table",
                            "json means --json; table (the default) is for people",
                            ParseJsonOrTable, global.json));
}

CLI::Option* Repeatable(CLI::Option* option) {
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* Several(CLI::Option* option) { return Repeatable(option->expected(-1)); }

void AddJob(CLI::App& app, std::string& job) {
  AddValue<std::string>(app, "JOB", "", "jobs/ID, or ID alone, or last", ParseJobName, job)
      ->required();
}

CLI::Option* AddOutputs(CLI::App& app, std::vector<OutputFile>& outputs,
                        const std::string& description) {
  return Several(AddValue<OutputFile>(
      app, "-o,--output", "FILE", description, ParseOutputFile, [&](OutputFile output) {
        if (std::find(outputs.begin(), outputs.end(), output) != outputs.end()) {
          throw CLI::ValidationError("--output names " + output.path + " twice");
        }
        outputs.push_back(std::move(output));
      }));
}

void AddPreviewDir(CLI::App& app, std::string& folder) {
  AddValue<std::string>(app, "--preview-dir", "DIR", "Folder to write previews to", ParseNotEmpty,
                        folder);
}

}  // namespace wan::client
