// No other file of wanctl includes CLI11, because compiling it takes seconds.
#include "client/wanctl/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <sstream>
#include <utility>

#include "client/wanctl/exit_code.h"

namespace wan::client {
namespace {

constexpr char kRootFooter[] = R"(Exit codes:
  0 done   2 usage   3 rejected   4 failed   5 cancelled or past its deadline   6 unreachable
  7 different (replay)

Examples:
  wanctl generate --model ti2v-5b --prompt "A red cat runs on the beach." --output cat.mp4
  wanctl --server gpu1:50051 list --state running
  wanctl report 4f1c9a52d07be6831a2c

'wanctl COMMAND --help' lists the flags of a command.)";

constexpr char kGenerateFooter[] = R"(The file's ending selects the artifact:
  .mp4          H.264, yuv420p, plays everywhere
  .mkv          FFV1, exactly the RGB frames
  .safetensors  tensor 'latents', fp32, [C,T,H,W], as the solver left them

Ctrl-C cancels the job. Use 'wanctl submit' for a job that should outlive its caller.

Examples:
  wanctl generate --model ti2v-5b --prompt "A red cat runs on the beach." --output cat.mp4
  wanctl generate --model ti2v-5b --prompt "It turns its head." --image cat.png \
      --size 1280x704 --frames 121 --steps 50 --guidance 5 --shift 5 --seed 42 \
      --output turn.mp4 turn.mkv)";

constexpr char kSubmitFooter[] = R"(Examples:
  job=$(wanctl submit --model ti2v-5b --prompt "A red cat runs on the beach.")
  wanctl watch "$job" && wanctl download "$job" --output cat.mp4)";

constexpr char kDownloadFooter[] =
    R"(The file's ending selects the artifact, as for generate. The file appears once it is complete and its
SHA-256 is right; an interrupted download continues where it stopped.

Examples:
  wanctl download jobs/4f1c9a52d07be6831a2c --output cat.mp4
  wanctl download 4f1c9a52d07be6831a2c --output cat.mp4 cat.mkv)";

constexpr char kReplayFooter[] =
    R"(The exit code is 0 if every file has the same bits, and 7 if not; then each difference between the two
servers, their models and libraries that may explain it is named. The job lives as long as the call.

Examples:
  wanctl replay 4f1c9a52d07be6831a2c
  wanctl replay 4f1c9a52d07be6831a2c --image cat.png)";

constexpr char kModelsFooter[] = R"(Examples:
  wanctl models
  wanctl models load 5b /checkpoints/Wan2.2-TI2V-5B --lora style=/loras/style.safetensors
  wanctl models warmup 5b 1280x704x121 704x1280x121
  wanctl models unload 5b)";

// Adds an option whose values are read by `parse` and kept by `store`. One value a flag, the flag
// once, unless the caller says otherwise.
template <typename T>
CLI::Option* AddValue(CLI::App& app, const std::string& name, const std::string& value_name,
                      const std::string& description, absl::StatusOr<T> (*parse)(std::string_view),
                      std::function<void(T)> store) {
  // The name of a positional argument has no dashes.
  const std::string shown = name.starts_with("-") ? name : name + " argument";
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

// May be given several times, with one value each.
CLI::Option* Repeatable(CLI::Option* option) {
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// Takes all values up to the next flag, and may be given several times.
CLI::Option* Several(CLI::Option* option) { return Repeatable(option->expected(-1)); }

class Parser {
 public:
  explicit Parser(const std::string& default_server) : default_server_(default_server) {
    app_.name("wanctl");
    app_.footer(kRootFooter);
    app_.set_version_flag("--version", "wanctl " WAN_VERSION, "Show the version and exit");
    app_.require_subcommand(1);
    app_.get_formatter()->column_width(34);
    AddGlobal(app_);
    AddGenerate();
    AddSubmit();
    AddQuote();
    AddJobCommands();
    AddModels();
    AddServerCommands();
  }

  std::variant<Options, EarlyExit> Parse(const std::vector<std::string>& args) {
    try {
      app_.parse(Prepared(args));
      options_.command = chosen_();
      if (options_.global.server.empty()) {
        absl::StatusOr<std::string> server = ParseServer(default_server_);
        if (!server.ok()) {
          throw CLI::ValidationError("WAN_SERVER " + std::string(server.status().message()));
        }
        options_.global.server = *std::move(server);
      }
      return std::move(options_);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0) return UsageError(error.what());
      std::ostringstream out;
      app_.exit(error, out, out);
      return EarlyExit{kExitDone, out.str(), ""};
    }
  }

 private:
  EarlyExit UsageError(std::string what) const {
    // CLI11 only says that a command is missing.
    const std::vector<std::string> rest = app_.remaining();
    if (app_.get_subcommands().empty() && !rest.empty()) what = "unknown command " + rest.front();
    return {kExitUsage, "",
            "wanctl: " + what +
                "\n'wanctl --help' lists the commands, 'wanctl COMMAND --help' its flags.\n"};
  }

  // Returns the arguments in the order that CLI11 wants, the last one first. "--name=" becomes two
  // arguments, since CLI11 takes the following argument for the value otherwise.
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

  // The global flags may stand before the command and after it.
  void AddGlobal(CLI::App& app, const std::string& timeout =
                                    "End the command after this time, whatever it waits for") {
    GlobalFlags& global = options_.global;
    AddValue<std::string>(app, "--server", "HOST:PORT",
                          "Server to call (default: $WAN_SERVER, else localhost:50051)",
                          ParseServer, [&](std::string value) { global.server = std::move(value); })
        ->group("Connection");
    AddValue<absl::Duration>(app, "--timeout", "SECONDS", timeout, ParseSeconds,
                             [&](absl::Duration value) { global.timeout = value; })
        ->group("Connection");
    app.add_flag_callback(
           "--tls", [&] { global.tls = true; }, "Speak TLS, and trust the machine's authorities")
        ->group("Connection");
    const auto add_file = [&](const std::string& name, const std::string& description,
                              std::string& file) {
      AddValue<std::string>(app, name, "FILE", description, ParseNotEmpty, [&](std::string value) {
        file = std::move(value);
      })->group("Connection");
    };
    add_file("--tls-ca", "Speak TLS, and trust the authorities of this PEM file", global.tls_ca);
    add_file("--tls-cert", "Client certificate, a PEM file", global.tls_cert);
    add_file("--tls-key", "Key of the client certificate, a PEM file", global.tls_key);
    add_file("--token-file", "File that has the token (default: $WAN_TOKEN)", global.token_file);
    app.add_flag_callback(
           "--allow-plaintext-token", [&] { global.allow_plaintext_token = true; },
           "Send the token without TLS to another machine, where others may read it")
        ->group("Connection");
    app.add_flag_callback(
           "--json", [&] { global.json = true; },
           "Print every message of the server as one line of JSON")
        ->group("Connection");
  }

  // `command` is what the parsed flags mean, asked for once they are all read.
  CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description,
                       std::function<Command()> command, const std::string& footer = "") {
    CLI::App* app = AddBareCommand(parent, name, description, std::move(command));
    app->footer(footer);
    AddGlobal(*app);
    return app;
  }

  // The same without the global flags.
  CLI::App* AddBareCommand(CLI::App& parent, const std::string& name,
                           const std::string& description, std::function<Command()> command) {
    CLI::App* app = parent.add_subcommand(name, description);
    // A nested command runs its callback before its parent does.
    app->callback([this, command = std::move(command)] {
      if (!chosen_) chosen_ = command;
    });
    return app;
  }

  void AddRequestFlags(CLI::App& app, RequestFlags& flags) {
    wan::v1::GenerationRequest& request = flags.request;
    AddValue<std::string>(app, "--model", "NAME", "Name of the model on the server", ParseNotEmpty,
                          [&](std::string value) { request.set_model(std::move(value)); })
        ->required();
    AddValue<std::string>(app, "--prompt", "TEXT", "What the video shows", ParseText,
                          [&](std::string value) { request.set_prompt(std::move(value)); })
        ->required();
    AddValue<std::string>(
        app, "--negative-prompt", "TEXT", "What the video should not show", ParseText,
        [&](std::string value) { request.set_negative_prompt(std::move(value)); });
    AddValue<std::string>(app, "--image", "FILE", "First frame, a PNG or JPEG file", ParseNotEmpty,
                          [&](std::string value) { flags.image_path = std::move(value); });
    AddValue<wan::v1::Shape>(app, "--size", "WxH", "Width and height in pixels", ParseSize,
                             [&](const wan::v1::Shape& value) {
                               request.set_width(value.width());
                               request.set_height(value.height());
                             });
    app.add_flag_callback(
        "--exact-size", [&] { request.set_exact_size(true); },
        "With an image: cut it to --size, rather than take the size from its shape");
    AddValue<int32_t>(app, "--frames", "N", "Number of frames, 4n+1", ParseInt32,
                      [&](int32_t value) { request.set_num_frames(value); });
    AddValue<int32_t>(app, "--fps", "N", "Frames per second of the file", ParseInt32,
                      [&](int32_t value) { request.set_fps(value); });
    AddValue<int32_t>(app, "--steps", "N", "Number of denoising steps", ParseInt32,
                      [&](int32_t value) { request.set_steps(value); });
    AddValue<std::vector<double>>(
        app, "--guidance", "G|LOW,HIGH",
        "Guidance scale, or one for the low-noise and one for the high-noise expert", ParseGuidance,
        [&](const std::vector<double>& values) {
          request.mutable_guidance_scale()->Assign(values.begin(), values.end());
        });
    AddValue<double>(app, "--shift", "S", "Time shift of the noise schedule", ParseNumber,
                     [&](double value) { request.set_shift(value); });
    AddValue<wan::v1::Solver>(app, "--solver", "NAME",
                              "Solver of the denoising steps: unipc, dpm++ or euler", ParseSolver,
                              [&](wan::v1::Solver value) { request.set_solver(value); });
    AddValue<wan::v1::VaePrecision>(
        app, "--vae-precision", "NAME",
        "Precision of the video autoencoder: fp32, tf32, fp16 or bf16", ParseVaePrecision,
        [&](wan::v1::VaePrecision value) { request.set_vae_precision(value); });
    AddValue<int64_t>(app, "--seed", "N", "Seed of the noise (default: the server draws one)",
                      ParseInt64, [&](int64_t value) { request.set_seed(value); });
    Repeatable(AddValue<wan::v1::LoraScale>(
        app, "--lora", "NAME[:SCALE]", "LoRA of the model; the scale is 1 by default; repeatable",
        ParseLoraScale, [&](wan::v1::LoraScale lora) { *request.add_loras() = std::move(lora); }));
    AddValue<std::string>(
        app, "--request-id", "ID", "A second call with the same ID returns the first call's job",
        ParseNotEmpty, [&](std::string value) { request.set_request_id(std::move(value)); });
    AddValue<int32_t>(app, "--priority", "N", "-100 to 100; jobs with a higher priority run first",
                      ParseInt32, [&](int32_t value) { request.set_priority(value); });
    AddValue<absl::Duration>(app, "--deadline", "SECONDS",
                             "Cancel the job if it has not ended after this time", ParseSeconds,
                             [&](absl::Duration value) { flags.deadline = value; });
    Repeatable(AddValue<std::pair<std::string, std::string>>(
        app, "--label", "KEY=VALUE", "Label for your own use; repeatable", ParseLabel,
        [&](const std::pair<std::string, std::string>& label) {
          auto [entry, added] = request.mutable_labels()->insert({label.first, label.second});
          if (!added) throw CLI::ValidationError("--label gives '" + label.first + "' twice");
        }));
    AddValue<int32_t>(app, "--preview-interval", "N", "Make a preview after every N steps",
                      ParseInt32, [&](int32_t value) { request.set_preview_interval(value); });
  }

  CLI::Option* AddOutputs(CLI::App& app, std::vector<OutputFile>& outputs) {
    return Several(AddValue<OutputFile>(
                       app, "--output", "FILE",
                       "File to write, .mp4, .mkv or .safetensors; repeatable", ParseOutputFile,
                       [&](OutputFile output) {
                         if (std::find(outputs.begin(), outputs.end(), output) != outputs.end()) {
                           throw CLI::ValidationError("--output names " + output.path + " twice");
                         }
                         outputs.push_back(std::move(output));
                       }))
        ->required();
  }

  void AddPreviewDir(CLI::App& app, std::string& folder) {
    AddValue<std::string>(app, "--preview-dir", "DIR", "Folder to write previews to", ParseNotEmpty,
                          [&](std::string value) { folder = std::move(value); });
  }

  void AddJob(CLI::App& app, std::string& job) {
    AddValue<std::string>(app, "JOB", "", "jobs/ID, or ID alone", ParseJobName,
                          [&](std::string value) { job = std::move(value); })
        ->required();
  }

  void AddGenerate() {
    CLI::App* app = AddCommand(
        app_, "generate", "Make a video and wait for it",
        [this]() -> Command {
          wan::v1::GenerationRequest& request = generate_.flags.request;
          for (const OutputFile& output : generate_.outputs) {
            if (std::find(request.outputs().begin(), request.outputs().end(), output.kind) ==
                request.outputs().end()) {
              request.add_outputs(output.kind);
            }
          }
          const bool previews = request.preview_interval() != 0;
          if (!generate_.preview_dir.empty() && !previews) {
            throw CLI::ValidationError(
                "--preview-dir needs --preview-interval N, which asks for the previews");
          }
          if (previews && generate_.preview_dir.empty() && !options_.global.json) {
            throw CLI::ValidationError(
                "--preview-interval needs --preview-dir DIR to write the previews to, or --json");
          }
          return generate_;
        },
        kGenerateFooter);
    AddRequestFlags(*app, generate_.flags);
    AddPreviewDir(*app, generate_.preview_dir);
    AddOutputs(*app, generate_.outputs);
  }

  void AddQuote() {
    CLI::App* app = AddCommand(
        app_, "quote", "Show what a video would take, without making it", [this]() -> Command {
          wan::v1::GenerationRequest& request = quote_.flags.request;
          for (const OutputFile& output : quote_.outputs) {
            if (std::find(request.outputs().begin(), request.outputs().end(), output.kind) ==
                request.outputs().end()) {
              request.add_outputs(output.kind);
            }
          }
          return quote_;
        });
    AddRequestFlags(*app, quote_.flags);
    AddPreviewDir(*app, quote_.preview_dir);
    AddOutputs(*app, quote_.outputs)->required(false);
  }

  void AddSubmit() {
    wan::v1::GenerationRequest& request = submit_.flags.request;
    CLI::App* app = AddCommand(
        app_, "submit", "Create a job that runs on its own, and print its name",
        [this, &request]() -> Command {
          if (request.outputs().empty()) request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
          return submit_;
        },
        kSubmitFooter);
    AddRequestFlags(*app, submit_.flags);
    Repeatable(AddValue<wan::v1::OutputKind>(
        *app, "--artifact", "KIND",
        "Kind of file to make: mp4 (default), mkv or safetensors; repeatable", ParseArtifactKind,
        [&request](wan::v1::OutputKind kind) {
          if (std::find(request.outputs().begin(), request.outputs().end(), kind) ==
              request.outputs().end()) {
            request.add_outputs(kind);
          }
        }));
  }

  void AddJobCommands() {
    CLI::App* watch =
        AddCommand(app_, "watch", "Follow a job to its end; the exit code says how it ended",
                   [this]() -> Command { return watch_; });
    AddJob(*watch, watch_.job);
    AddValue<int64_t>(*watch, "--after", "N", "Show only events after this sequence number",
                      ParseInt64, [this](int64_t value) { watch_.after = value; });
    AddPreviewDir(*watch, watch_.preview_dir);

    AddJob(*AddCommand(app_, "get", "Show everything about a job",
                       [this]() -> Command { return get_; }),
           get_.job);

    CLI::App* list =
        AddCommand(app_, "list", "List jobs, newest first", [this]() -> Command { return list_; });
    Repeatable(AddValue<wan::v1::JobState>(
        *list, "--state", "STATE",
        "List only queued, running, completed, failed or cancelled jobs; repeatable", ParseJobState,
        [this](wan::v1::JobState state) { list_.states.push_back(state); }));
    AddValue<std::string>(*list, "--filter", "TEXT",
                          "List only jobs that it accepts, such as 'labels.team = video'; see "
                          "docs/api.md",
                          ParseNotEmpty,
                          [this](std::string value) { list_.filter = std::move(value); });
    AddValue<std::string>(*list, "--order-by", "FIELD",
                          "create_time, end_time or priority, then 'desc' for the greatest first",
                          ParseNotEmpty,
                          [this](std::string value) { list_.order_by = std::move(value); });
    AddValue<int32_t>(*list, "--limit", "N", "List at most this many jobs (default: 50)",
                      ParseCount, [this](int32_t value) { list_.limit = value; });

    AddJob(*AddCommand(app_, "cancel", "End a job", [this]() -> Command { return cancel_; }),
           cancel_.job);

    AddJob(*AddCommand(app_, "delete", "Remove a job that has ended, with its files",
                       [this]() -> Command { return delete_; }),
           delete_.job);

    CLI::App* download = AddCommand(
        app_, "download", "Download the files of a job", [this]() -> Command { return download_; },
        kDownloadFooter);
    AddJob(*download, download_.job);
    AddOutputs(*download, download_.outputs);

    AddJob(*AddCommand(app_, "report", "Show where a job's time and memory went, stage by stage",
                       [this]() -> Command { return report_; }),
           report_.job);

    AddJob(*AddCommand(app_, "receipt",
                       "Show what a job's video was made from: request, server, files and digests",
                       [this]() -> Command { return receipt_; }),
           receipt_.job);

    CLI::App* replay = AddCommand(
        app_, "replay", "Make a job's video again, and say whether it is the same",
        [this]() -> Command { return replay_; }, kReplayFooter);
    AddJob(*replay, replay_.job);
    AddValue<std::string>(*replay, "--image", "FILE", "The image that the job was made with",
                          ParseNotEmpty,
                          [this](std::string value) { replay_.image_path = std::move(value); });
  }

  void AddModels() {
    CLI::App* models = AddCommand(
        app_, "models", "List models; load, unload and warm them up",
        []() -> Command { return ListModelsCommand(); }, kModelsFooter);
    models->require_subcommand(0, 1);

    CLI::App* load =
        AddCommand(*models, "load", "Load a model", [this]() -> Command { return load_; });
    AddModelName(*load, *load_.request.mutable_name());
    AddValue<std::string>(
        *load, "PATH", "",
        "Folder of its checkpoint on the server; not needed for a model that the server knows",
        ParseNotEmpty, [this](std::string value) { load_.request.set_path(std::move(value)); });
    Repeatable(AddValue<wan::v1::LoraSource>(*load, "--lora", "NAME[@EXPERT]=PATH",
                                             "LoRA that requests may use, a file on the server; "
                                             "@high or @low for one expert; repeatable",
                                             ParseLoraSource, [this](wan::v1::LoraSource lora) {
                                               *load_.request.add_loras() = std::move(lora);
                                             }));

    CLI::App* unload = AddCommand(*models, "unload", "Unload a model and free its memory",
                                  [this]() -> Command { return unload_; });
    AddModelName(*unload, *unload_.request.mutable_name());

    CLI::App* warmup = AddCommand(*models, "warmup",
                                  "Run a model once at each shape, so that its first job is fast",
                                  [this]() -> Command { return warmup_; });
    AddModelName(*warmup, *warmup_.request.mutable_name());
    Several(AddValue<wan::v1::Shape>(
        *warmup, "SHAPE", "", "WxHxFRAMES; without any, the model's default shape", ParseShape,
        [this](const wan::v1::Shape& shape) { *warmup_.request.add_shapes() = shape; }));
  }

  void AddModelName(CLI::App& app, std::string& name) {
    AddValue<std::string>(app, "NAME", "", "The model's name", ParseNotEmpty,
                          [&name](std::string value) { name = std::move(value); })
        ->required();
  }

  void AddServerCommands() {
    CLI::App* devices = AddCommand(app_, "devices", "Show the server's devices",
                                   [this]() -> Command { return devices_; });
    devices->add_flag_callback(
        "--watch", [this] { devices_.watch = true; }, "Show it again every second until Ctrl-C");
    AddCommand(app_, "info", "Show the server's versions, devices and number of jobs",
               []() -> Command { return InfoCommand(); });
    CLI::App* usage = AddCommand(app_, "usage", "Show what you use and may use of the server",
                                 [this]() -> Command { return usage_; });
    AddValue<std::string>(
        *usage, "PRINCIPAL", "", "Another principal, which needs the role admin; default: yourself",
        ParseNotEmpty, [this](std::string value) { usage_.principal = std::move(value); });
    CLI::App* drain =
        AddBareCommand(app_, "drain", "Make the server ready to be stopped, and wait until it is",
                       [this]() -> Command {
                         DrainCommand command;
                         // The server keeps the limit, so the call itself has none.
                         const absl::Duration timeout =
                             std::exchange(options_.global.timeout, absl::InfiniteDuration());
                         if (timeout < absl::InfiniteDuration()) {
                           google::protobuf::Duration& limit = *command.request.mutable_timeout();
                           absl::Duration rest;
                           limit.set_seconds(absl::IDivDuration(timeout, absl::Seconds(1), &rest));
                           limit.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
                         }
                         return command;
                       });
    AddGlobal(*drain,
              "The most time that the running job may go on (default: the server's "
              "shutdown_grace_seconds)");
  }

  CLI::App app_{"Makes videos on a wanserve server and manages its jobs and models."};
  const std::string default_server_;
  Options options_;
  std::function<Command()> chosen_;

  GenerateCommand generate_;
  SubmitCommand submit_;
  QuoteCommand quote_;
  UsageCommand usage_;
  WatchCommand watch_;
  GetCommand get_;
  ListCommand list_;
  CancelCommand cancel_;
  DeleteCommand delete_;
  DownloadCommand download_;
  ReportCommand report_;
  ReceiptCommand receipt_;
  ReplayCommand replay_;
  LoadModelCommand load_;
  UnloadModelCommand unload_;
  WarmupModelCommand warmup_;
  DevicesCommand devices_;
};

}  // namespace

std::variant<Options, EarlyExit> ParseCommandLine(const std::vector<std::string>& args,
                                                  const std::string& default_server) {
  return Parser(default_server).Parse(args);
}

}  // namespace wan::client
