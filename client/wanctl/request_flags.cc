// Registers generate, submit, quote and calibrate, the commands that take a request.
#include <algorithm>
#include <string>
#include <utility>

#include "client/wanctl/command_registry.h"

namespace wan::client {
namespace {

constexpr char kGenerateFooter[] = R"(The file's ending selects the artifact:
  .mp4          H.264, yuv420p, plays everywhere
  .mkv          FFV1, exactly the RGB frames
  .safetensors  tensor 'latents', fp32, [C,T,H,W], as the solver left them

Ctrl-C cancels the job. Use 'wanctl submit' for a job that should outlive its caller.

Examples:
  wanctl generate "A red cat runs on the beach."
  wanctl generate "It turns its head." --model ti2v-5b --image cat.png --size 1280x704 --seconds 5 \
      --steps 50 --guidance 5 --shift 5 --seed 42 -o turn.mp4 turn.mkv
  wanctl generate "A red cat runs on the beach." --count 4     four videos with seeds of their own
  wanctl generate "A grey cat runs on the beach." --latents JOB --strength 0.8
  wanctl generate --latents JOB --steps 0 --crf 12)";

constexpr char kSubmitFooter[] = R"(Examples:
  wanctl submit "A red cat runs on the beach."
  wanctl watch last && wanctl download last -o cat.mp4
  wanctl submit --from prompts.txt --steps 20            a job for each line

A file for --from has a prompt in each line (.txt), a JSON object with fields of the request in each line
(.jsonl), or a row for each request below a row with the fields' names (.csv). The other flags hold where
the file says nothing else.)";

constexpr char kCalibrationPrompt[] = "A lighthouse at sunset, waves break on the rocks.";

constexpr char kCalibrateFooter[] =
    R"(One job is made with quality exact; its latents are all that it keeps. The file goes into the
folder of the model's checkpoint on the server, and is read when the model is loaded again.

Examples:
  wanctl calibrate my-model
  wanctl calibrate my-i2v --image boat.png --size 832x480 --output my-i2v/step_ratios.json)";

// Adds the flags for the video's content and size.
void AddPictureFlags(CLI::App& app, RequestFlags& flags) {
  wan::v1::GenerationRequest& request = flags.request;
  AddValue<std::string>(app, "--negative-prompt", "TEXT",
                        "What the video should not show (default, and if empty: the model's own)",
                        ParseText,
                        [&](std::string value) { request.set_negative_prompt(std::move(value)); });
  AddValue<std::string>(app, "--image", "FILE", "First frame, a PNG, JPEG or WebP file",
                        ParseNotEmpty,
                        [&](std::string value) { flags.image_path = std::move(value); });
  AddValue<std::string>(app, "--background", "RRGGBB",
                        "Colour behind the transparent parts of the image (default: ffffff, white)",
                        ParseColor,
                        [&](std::string value) { request.set_background(std::move(value)); });
  AddValue<wan::v1::Shape>(app, "--size", "WxH", "Width and height in pixels", ParseSize,
                           [&](const wan::v1::Shape& value) {
                             request.set_width(value.width());
                             request.set_height(value.height());
                           });
  app.add_flag_callback(
      "--exact-size", [&] { request.set_exact_size(true); },
      "With an image: cut it to --size, rather than take the size from its shape");
  // Do not use CLI11's excludes(): the help would list the excluded flags in an order that changes.
  const auto check_length = [&] {
    if (request.has_num_frames() && flags.seconds.has_value()) {
      throw CLI::ValidationError("--frames and --seconds are both given; give one of them");
    }
  };
  AddValue<int32_t>(app, "--frames", "N", "Number of frames, 4n+1", ParseInt32,
                    [&, check_length](int32_t value) {
                      request.set_num_frames(value);
                      check_length();
                    });
  AddValue<double>(app, "--seconds", "S",
                   "Length, instead of --frames, to the nearest that is possible", ParseLength,
                   [&, check_length](double value) {
                     flags.seconds = value;
                     check_length();
                   });
}

// Adds the flags for the noise and the latents with which a job begins.
void AddLatentsFlags(CLI::App& app, RequestFlags& flags) {
  AddValue<JobOrFile>(
      app, "--initial-latents", "FILE|JOB",
      "Noise to begin with, instead of the seed's: a safetensors file, or a job that "
      "has made one",
      ParseJobOrFile, [&](JobOrFile value) { flags.initial_latents = value; });
  AddValue<JobOrFile>(app, "--latents", "FILE|JOB",
                      "Latents to change, with --strength, or to decode, with --steps 0",
                      ParseJobOrFile, [&](JobOrFile value) { flags.latents = value; });
  AddValue<double>(app, "--strength", "S",
                   "How much noise --latents get, up to 1: the more, the less is left of them",
                   ParseNumber, [&](double value) { flags.request.set_strength(value); });
}

void AddPrompt(CLI::App& app, RequestFlags& flags) {
  wan::v1::GenerationRequest& request = flags.request;
  const auto take = [&](std::string& field, std::string value) {
    if (!request.prompt().empty() || !flags.prompt_path.empty()) {
      throw CLI::ValidationError(
          "of PROMPT, --prompt and --prompt-file several are given; give one of them");
    }
    field = std::move(value);
  };
  const auto take_text = [&request, take](std::string value) {
    take(*request.mutable_prompt(), std::move(value));
  };
  AddValue<std::string>(app, "PROMPT", "", "What the video shows; needed unless --steps is 0",
                        ParseNotEmpty, take_text);
  AddValue<std::string>(app, "--prompt", "TEXT", "The same as PROMPT", ParseNotEmpty, take_text);
  AddValue<std::string>(
      app, "--prompt-file", "FILE", "File whose text is the prompt", ParseNotEmpty,
      [&flags, take](std::string value) { take(flags.prompt_path, std::move(value)); });
}

// Throws if a request that computes steps has no prompt.
void RequirePrompt(const RequestFlags& flags, const std::string& command) {
  const bool only_decodes = flags.request.has_steps() && flags.request.steps() == 0;
  if (only_decodes || !flags.request.prompt().empty() || !flags.prompt_path.empty()) return;
  throw CLI::ValidationError("PROMPT is missing, for example: wanctl " + command +
                             " \"A red cat runs on the beach.\"");
}

constexpr char kCountHelp[] =
    "Number of videos (default: 1); with --seed N they have the seeds N, N+1 and so on";

void AddSamplingFlags(CLI::App& app, wan::v1::GenerationRequest& request) {
  AddValue<int32_t>(app, "--steps", "N", "Number of denoising steps; 0: only decode --latents",
                    ParseInt32, [&](int32_t value) { request.set_steps(value); });
  AddValue<std::vector<double>>(
      app, "--guidance", "G|LOW,HIGH",
      "Guidance scale, or one for the low-noise and one for the high-noise expert", ParseGuidance,
      [&](const std::vector<double>& values) {
        request.mutable_guidance_scale()->Assign(values.begin(), values.end());
      });
  AddValue<double>(app, "--shift", "S", "Time shift of the noise schedule", ParseNumber,
                   [&](double value) { request.set_shift(value); });
  AddValue<std::vector<double>>(
      app, "--sigmas", "S,S,...",
      "Noise levels of the steps before the shift, for solver euler: 1,0.75,0.5,0.25", ParseSigmas,
      [&](const std::vector<double>& values) {
        request.mutable_sigmas()->Assign(values.begin(), values.end());
      });
  AddValue<int32_t>(app, "--boundary-step", "N",
                    "First step of the low-noise expert, from 0 (default: by the noise level)",
                    ParseInt32, [&](int32_t value) { request.set_boundary_step(value); });
  AddValue<wan::v1::Solver>(app, "--solver", Alternatives<wan::v1::Solver>(),
                            "Solver of the denoising steps", ParseSolver,
                            [&](wan::v1::Solver value) { request.set_solver(value); });
}

// Each flag is one statement. NOLINTNEXTLINE(readability-function-size)
void AddRequestFlags(CLI::App& app, RequestFlags& flags) {
  wan::v1::GenerationRequest& request = flags.request;
  AddValue<std::string>(app, "--model", "NAME",
                        "Name of the model on the server (default: the only one that is loaded)",
                        ParseNotEmpty,
                        [&](std::string value) { request.set_model(std::move(value)); });
  AddPrompt(app, flags);
  AddPictureFlags(app, flags);
  AddValue<int32_t>(app, "--fps", "N", "Frames per second of the file", ParseInt32,
                    [&](int32_t value) { request.set_fps(value); });
  AddValue<int32_t>(app, "--crf", "N",
                    "Quality of the MP4 file, 1 (best, largest) to 51 (default: the server's)",
                    ParseInt32, [&](int32_t value) { request.set_h264_crf(value); });
  AddSamplingFlags(app, request);
  AddLatentsFlags(app, flags);
  AddValue<wan::v1::Quality>(app, "--quality", Alternatives<wan::v1::Quality>(),
                             "exact; high: products and attention of 8 bits; fast: also reuses "
                             "results of earlier steps (default: the model's)",
                             ParseQuality,
                             [&](wan::v1::Quality value) { request.set_quality(value); });
  AddValue<wan::v1::VaePrecision>(
      app, "--vae-precision", Alternatives<wan::v1::VaePrecision>(),
      "Precision of the video autoencoder", ParseVaePrecision,
      [&](wan::v1::VaePrecision value) { request.set_vae_precision(value); });
  AddValue<wan::v1::Decoder>(app, "--decoder", Alternatives<wan::v1::Decoder>(),
                             "full; tiny: a small network, if the model has one, that decodes in "
                             "a fraction of the time (default: full)",
                             ParseDecoder,
                             [&](wan::v1::Decoder value) { request.set_decoder(value); });
  AddValue<int64_t>(app, "--seed", "N",
                    "Seed of the noise (default, and if negative: the server draws one)",
                    ParseInt64, [&](int64_t value) { request.set_seed(value); });
  Repeatable(AddValue<wan::v1::LoraScale>(
      app, "--lora", "NAME[:SCALE]",
      "LoRA of the model; the scale is 1 by default; NAME:HIGH/LOW gives each expert its own; "
      "repeatable",
      ParseLoraScale, [&](wan::v1::LoraScale lora) { *request.add_loras() = std::move(lora); }));
  AddValue<std::string>(
      app, "--request-id", "ID", "A second call with the same ID returns the first call's job",
      ParseNotEmpty, [&](std::string value) { request.set_request_id(std::move(value)); });
  AddValue<int32_t>(app, "--priority", "N", "-100 to 100; jobs with a higher priority run first",
                    ParseInt32, [&](int32_t value) { request.set_priority(value); });
  AddValue<absl::Duration>(app, "--deadline", "SECONDS",
                           "Cancel the job if it has not ended after this time", ParseSeconds,
                           [&](absl::Duration value) { flags.deadline = value; });
  AddValue<wan::v1::Resume>(app, "--resume", Alternatives<wan::v1::Resume>(),
                            "After a restart: prefer begins at the start if the savepoint cannot "
                            "be used; require fails then (default: prefer)",
                            ParseResume, [&](wan::v1::Resume value) { request.set_resume(value); });
  Repeatable(AddValue<std::pair<std::string, std::string>>(
      app, "--label", "KEY=VALUE", "Label for your own use; repeatable", ParseLabel,
      [&](const std::pair<std::string, std::string>& label) {
        auto [entry, added] = request.mutable_labels()->insert({label.first, label.second});
        if (!added) throw CLI::ValidationError("--label gives '" + label.first + "' twice");
      }));
  AddValue<int32_t>(app, "--preview-interval", "N",
                    "Make previews (first, middle and last frame) after every N steps", ParseInt32,
                    [&](int32_t value) { request.set_preview_interval(value); });
  app.add_flag_callback(
      "--profile", [&] { request.set_profile(true); },
      "Measure the operators of one transformer block; 'wanctl report' shows them");
}

// Adds an output kind to the request if it is not there yet.
void AddOutputKind(wan::v1::GenerationRequest& request, wan::v1::OutputKind kind) {
  const auto& kinds = request.outputs();
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) request.add_outputs(kind);
}

void AddOutputKinds(wan::v1::GenerationRequest& request, const std::vector<OutputFile>& outputs) {
  for (const OutputFile& output : outputs) AddOutputKind(request, output.kind);
}

void AddCalibrate(CommandRegistry& registry) {
  const auto calibrate = registry.Add<CalibrateCommand>(
      {"calibrate", "Measure how much a model's steps change, which quality fast needs",
       kCalibrateFooter},
      [](CalibrateCommand& command) {
        wan::v1::GenerationRequest& request = command.flags.request;
        if (request.prompt().empty()) request.set_prompt(kCalibrationPrompt);
        request.set_calibrate(true);
        request.set_quality(wan::v1::QUALITY_EXACT);
        request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
      });
  wan::v1::GenerationRequest& request = calibrate.command.flags.request;
  AddValue<std::string>(calibrate.app, "MODEL", "", "Name of the model on the server",
                        ParseNotEmpty,
                        [&request](std::string value) { request.set_model(std::move(value)); })
      ->required();
  AddValue<std::string>(calibrate.app, "--prompt", "TEXT",
                        "What the video shows (default: waves at a lighthouse)", ParseNotEmpty,
                        [&request](std::string value) { request.set_prompt(std::move(value)); });
  AddPictureFlags(calibrate.app, calibrate.command.flags);
  AddSamplingFlags(calibrate.app, request);
  AddValue<std::string>(calibrate.app, "--output", "FILE",
                        "File to write (default: step_ratios.json)", ParseNotEmpty,
                        calibrate.command.output);
}

}  // namespace

void RegisterRequestCommands(CommandRegistry& registry) {
  const auto generate = registry.Add<GenerateCommand>(
      {"generate", "Make a video and wait for it", kGenerateFooter},
      [&global = registry.global()](GenerateCommand& command) {
        RequirePrompt(command.flags, "generate");
        wan::v1::GenerationRequest& request = command.flags.request;
        AddOutputKinds(request, command.outputs);
        if (command.outputs.empty()) request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
        const bool previews = request.preview_interval() != 0;
        if (!command.preview_dir.empty() && !previews) {
          throw CLI::ValidationError(
              "--preview-dir needs --preview-interval N, which asks for the previews");
        }
        if (previews && command.preview_dir.empty() && !global.json) {
          throw CLI::ValidationError(
              "--preview-interval needs --preview-dir DIR to write the previews to, or --json");
        }
      });
  AddRequestFlags(generate.app, generate.command.flags);
  AddPreviewDir(generate.app, generate.command.preview_dir);
  AddOutputs(generate.app, generate.command.outputs,
             "File to write, .mp4, .mkv or .safetensors (default: an .mp4 that is named after the "
             "prompt and the job); repeatable");
  AddValue<int32_t>(generate.app, "--count", "N", kCountHelp, ParseCount, generate.command.count);

  const auto submit = registry.Add<SubmitCommand>(
      {"submit", "Create a job that runs on its own, and print its name", kSubmitFooter},
      [](SubmitCommand& command) {
        if (command.from.empty()) RequirePrompt(command.flags, "submit");
        wan::v1::GenerationRequest& request = command.flags.request;
        if (request.outputs().empty()) request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
      });
  AddRequestFlags(submit.app, submit.command.flags);
  Repeatable(AddValue<wan::v1::OutputKind>(
      submit.app, "--artifact", Alternatives<wan::v1::OutputKind>(),
      "Kind of file to make (default: mp4); repeatable", ParseArtifactKind,
      [&request = submit.command.flags.request](wan::v1::OutputKind kind) {
        AddOutputKind(request, kind);
      }));
  AddValue<int32_t>(submit.app, "--count", "N", kCountHelp, ParseCount, submit.command.count);
  AddValue<std::string>(submit.app, "--from", "FILE",
                        "File with many requests: .txt, .jsonl or .csv", ParseBatchFile,
                        submit.command.from);

  const auto quote = registry.Add<QuoteCommand>(
      {"quote", "Show what a video would take, without making it"}, [](QuoteCommand& command) {
        RequirePrompt(command.flags, "quote");
        AddOutputKinds(command.flags.request, command.outputs);
      });
  AddRequestFlags(quote.app, quote.command.flags);
  AddPreviewDir(quote.app, quote.command.preview_dir);
  AddOutputs(quote.app, quote.command.outputs,
             "File that generate would write, .mp4, .mkv or .safetensors; repeatable");
  AddCalibrate(registry);
}

}  // namespace wan::client
