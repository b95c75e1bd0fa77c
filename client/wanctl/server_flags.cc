// Registers the commands about models, and those about the server.
#include <google/protobuf/duration.pb.h>

#include <string>
#include <utility>

#include "client/wanctl/command_registry.h"

namespace wan::client {
namespace {

constexpr char kModelsFooter[] = R"(Examples:
  wanctl models
  wanctl models download ti2v-5b              34 GB, verified; goes on where it was interrupted
  wanctl models load 5b /checkpoints/Wan2.2-TI2V-5B --lora style=/loras/style.safetensors
  wanctl models warmup 5b 1280x704x121 704x1280x121
  wanctl models unload 5b)";

constexpr char kDownloadFooter[] =
    R"(Runs wanserve-fetch-model, which needs curl, and prints the folder. No server is called. A file appears under
its name only when its size and digest are right, and another run goes on where this one stopped.)";

constexpr char kHealthFooter[] =
    R"(The exit code is 0 only if the answer is SERVING, so that the command serves as a check of containers:
it is 3 for any other answer and 6 if nobody answers. After NOT_SERVING the line says why. No token is needed
unless the server's health_access says so. Without --timeout it waits 5 s.)";

void AddModelName(CLI::App& app, std::string& name,
                  absl::StatusOr<std::string> (*parse)(std::string_view) = ParseNotEmpty) {
  AddValue<std::string>(app, "NAME", "", "The model's name", parse, name)->required();
}

void RegisterModels(CommandRegistry& registry) {
  CLI::App& models =
      registry
          .Add<ListModelsCommand>(
              {"models", "List models; load, unload and warm them up", kModelsFooter})
          .app;
  models.require_subcommand(0, 1);

  const auto load = registry.Add<LoadModelCommand>(models, {"load", "Load a model"});
  wan::v1::LoadModelRequest& request = load.command.request;
  AddModelName(load.app, *request.mutable_name(), ParseNameBeforePath);
  AddValue<std::string>(
      load.app, "PATH", "",
      "Folder of its checkpoint on the server; not needed for a model that the server knows",
      ParseNotEmpty, *request.mutable_path());
  Repeatable(AddValue<wan::v1::LoraSource>(
      load.app, "--lora", "NAME[@EXPERT]=PATH",
      "LoRA that requests may use, a file on the server; @high or @low for one expert; repeatable",
      ParseLoraSource,
      [&request](wan::v1::LoraSource lora) { *request.add_loras() = std::move(lora); }));
  Repeatable(AddValue<wan::v1::LoraSource>(
      load.app, "--add-lora", "NAME[@EXPERT]=PATH",
      "LoRA to add to those that the model has; no weights are read; repeatable", ParseLoraSource,
      [&request](wan::v1::LoraSource lora) { *request.add_added_loras() = std::move(lora); }));
  Repeatable(AddValue<std::string>(
      load.app, "--remove-lora", "NAME", "LoRA to take off the model; repeatable", ParseNotEmpty,
      [&request](std::string name) { request.add_removed_loras(std::move(name)); }));
  Repeatable(AddValue<wan::v1::LoraSource>(
      load.app, "--lora-schedule", "NAME=SCHEDULE",
      "Steps for which a LoRA of this command was distilled, such as "
      "steps:4,shift:5,boundary_step:2; none: no steps of its own; repeatable",
      ParseLoraSchedule, [&schedules = load.command.schedules](wan::v1::LoraSource named) {
        schedules.push_back(std::move(named));
      }));

  const auto download = registry.Add<DownloadModelCommand>(
      models, {"download", "Download a published checkpoint to this machine, and verify it",
               kDownloadFooter});
  AddValue<std::string>(download.app, "NAME", "", "ti2v-5b, for example; a wrong name lists all",
                        ParseNotEmpty, download.command.name)
      ->required();
  AddValue<std::string>(download.app, "FOLDER", "",
                        "Folder for the files; default: wanserve/models/NAME in the user's data "
                        "folder",
                        ParseNotEmpty, download.command.folder);
  AddValue<std::string>(download.app, "--base", "URL",
                        "Mirror of the repositories instead of huggingface.co", ParseNotEmpty,
                        download.command.base);

  const auto unload =
      registry.Add<UnloadModelCommand>(models, {"unload", "Unload a model and free its memory"});
  AddModelName(unload.app, *unload.command.request.mutable_name());

  const auto warmup = registry.Add<WarmupModelCommand>(
      models, {"warmup", "Run a model once at each shape, so that its first job is fast"});
  AddModelName(warmup.app, *warmup.command.request.mutable_name());
  Several(AddValue<wan::v1::Shape>(
      warmup.app, "SHAPE", "", "WxHxFRAMES; without any, the model's default shape", ParseShape,
      [&request = warmup.command.request](const wan::v1::Shape& shape) {
        *request.add_shapes() = shape;
      }));
}

// Moves --timeout into the drain request: the server enforces it there, and the call itself must
// not end earlier.
void TakeTimeout(GlobalFlags& global, wan::v1::DrainRequest& request) {
  const absl::Duration timeout = std::exchange(global.timeout, absl::InfiniteDuration());
  if (timeout == absl::InfiniteDuration()) return;
  google::protobuf::Duration& limit = *request.mutable_timeout();
  absl::Duration rest;
  limit.set_seconds(absl::IDivDuration(timeout, absl::Seconds(1), &rest));
  limit.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

}  // namespace

void RegisterServerCommands(CommandRegistry& registry) {
  RegisterModels(registry);

  const auto devices = registry.Add<DevicesCommand>({"devices", "Show the server's devices"});
  devices.app.add_flag_callback(
      "--watch", [&command = devices.command] { command.watch = true; },
      "Show the devices again every second until Ctrl-C");

  registry.Add<InfoCommand>({"info", "Show the server's versions, devices and number of jobs"});

  const auto top = registry.Add<TopCommand>(
      {"top", "Show queue, jobs and devices on the whole terminal, until q is pressed"},
      [&global = registry.global()](TopCommand&) {
        if (!global.json) return;
        throw CLI::ValidationError(
            "top draws for people; programs have 'list', 'info' and 'devices --watch' with --json");
      });
  AddValue<absl::Duration>(top.app, "--interval", "SECONDS",
                           "Time between two refreshes (default: 1)", ParseSeconds,
                           top.command.interval);

  const auto health = registry.Add<HealthCommand>(
      {"health", "Say whether the server is ready for jobs", kHealthFooter},
      [&global = registry.global()](HealthCommand&) {
        if (global.timeout == absl::InfiniteDuration()) global.timeout = absl::Seconds(5);
      });
  AddValue<std::string>(health.app, "--service", "NAME",
                        "Ask about one service instead of the whole server; 'liveness': whether "
                        "the running job makes progress",
                        ParseNotEmpty, health.command.service);

  const auto usage =
      registry.Add<UsageCommand>({"usage", "Show your use of the server and your quotas"});
  AddValue<std::string>(usage.app, "PRINCIPAL", "",
                        "Another principal, which needs the role admin; default: yourself",
                        ParseNotEmpty, usage.command.principal);

  registry.Add<DrainCommand>(
      {"drain", "Make the server ready to be stopped, and wait until it is", "",
       "The most time that the running job may go on; 0 stops it at its next savepoint (default: "
       "the "
       "server's shutdown_grace_seconds)"},
      [&global = registry.global()](DrainCommand& command) {
        TakeTimeout(global, command.request);
      });

  registry.Add<UndrainCommand>(
      {"undrain", "Take a drain back: the server accepts and starts jobs again"});
}

}  // namespace wan::client
