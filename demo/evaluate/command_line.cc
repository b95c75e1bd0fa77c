// Only this file includes CLI11, because it adds seconds to the compile time of every file that
// does.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>

#include "absl/status/statusor.h"
#include "client/wanctl/values.h"
#include "demo/evaluate/commands.h"

namespace wan::demo {
namespace {

constexpr char kFooter[] = R"(Exit codes:
  0 done   2 usage   3 rejected   4 failed   5 cancelled   6 unreachable

Examples:
  demo_evaluate run --server gpu1:50051 --model demo --scenes demo/evaluate/scenes.jsonl \
      --mode both --steps 20 --output runs/plain
  demo_evaluate compare runs/plain/report.json runs/half-the-steps/report.json
  demo_evaluate columns runs/exact runs/high runs/fast
  demo_evaluate detect --scenes scenes.jsonl --clips clips.safetensors)";

// Turns one of wanctl's parsers into a check in CLI11's form.
template <typename T>
CLI::Validator Is(absl::StatusOr<T> (*parse)(std::string_view), const std::string& shown) {
  return CLI::Validator(
      [parse](std::string& text) {
        const absl::StatusOr<T> value = parse(text);
        return value.ok() ? std::string() : std::string(value.status().message());
      },
      shown);
}

class CommandLine {
 public:
  CommandLine() {
    app_.name("demo_evaluate");
    app_.footer(kFooter);
    app_.require_subcommand(1);
    AddDetect();
    AddRun();
    AddCompare();
    AddColumns();
  }

  int Execute(std::vector<std::string> args, const Environment& environment) {
    // CLI11 expects the arguments in reverse order.
    std::reverse(args.begin(), args.end());
    try {
      app_.parse(args);
      return chosen_(environment);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) {
        app_.exit(error, environment.out, environment.out);
        return client::kExitDone;
      }
      // CLI11 itself sees only that no known command is there.
      const std::vector<std::string> rest = app_.remaining();
      const bool unknown = app_.get_subcommands().empty() && !rest.empty();
      Say(environment, unknown ? "unknown command " + rest.front() : error.what());
      environment.err << "'demo_evaluate --help' and 'demo_evaluate COMMAND --help' say more.\n";
      return client::kExitUsage;
    }
  }

 private:
  void AddDetect() {
    CLI::App& app = *app_.add_subcommand("detect", "Judge clips that are in a file");
    app.add_option("--scenes", detect_.scenes, "The scenes of the clips, one JSON object per line")
        ->required();
    app.add_option("--clips", detect_.clips,
                   "safetensors with 'video': U8 [clips, frames, height, width, 3]")
        ->required();
    app.add_option("--reference", detect_.reference,
                   "The original clips in the same form, for the peak signal-to-noise ratio");
    app.add_option("--json", detect_.json, "File to write, with confusions and every clip");
    app.callback([this] {
      chosen_ = [this](const Environment& environment) { return Detect(detect_, environment); };
    });
  }

  void AddRun() {
    CLI::App& app = *app_.add_subcommand("run", "Have a server make videos, and judge them");
    app.add_option("--server", run_.server, "Server, HOST:PORT")
        ->required()
        ->check(Is(client::ParseServer, ""));
    app.add_option("--model", run_.model, "Name of the model on the server")->required();
    app.add_option("--scenes", run_.scenes, "Captions and their meaning, one JSON object per line")
        ->required();
    app.add_option("--output", run_.output,
                   "Folder for videos and report; an earlier run in it is continued")
        ->required();
    app.add_option("--images", run_.images,
                   "Folder of the scenes' first frames\n(default: first_frames beside the scenes)");
    app.add_option("--mode", mode_,
                   "Start videos from text, from image (with text), or once from each (both)")
        ->check(CLI::IsMember({"text", "image", "both"}))
        ->capture_default_str();
    app.add_option("--steps", run_.steps, "Denoising steps (default: the model's)");
    app.add_option("--guidance", run_.guidance, "Guidance scale (default: the model's)");
    app.add_option("--negative-prompt", run_.negative_prompt,
                   "Text that the videos should not show (default: the scene's, or the model's)");
    app.add_flag("--without-negative-prompts", run_.without_negative_prompts,
                 "Leave out the negative prompts that scenes have");
    app.add_option("--size", size_, "WxH in pixels (default: the model's)")
        ->check(Is(client::ParseSize, ""));
    app.add_option("--frames", run_.frames, "Frames, 4n+1 (default: the model's)");
    app.add_option("--shift", run_.shift, "Time shift of the noise (default: the model's)");
    app.add_option("--solver", solver_, "unipc, dpm++ or euler (default: the model's)")
        ->check(Is(client::ParseSolver, ""));
    app.add_option("--quality", quality_, "exact, high or fast (default: the server's)")
        ->check(Is(client::ParseQuality, ""));
    app.add_option("--seed", run_.seed,
                   "Seed of the first scene; each further scene has the next one")
        ->check(Is(client::ParseFixedSeed, ""))
        ->capture_default_str();
    app.add_option("--concurrency", run_.concurrency,
                   "Jobs with the server at a time (default: as many as its queue takes)")
        ->check(Is(client::ParseCount, ""));
    app.add_option("--priority", run_.priority,
                   "Priority of the jobs, -100 to 100; higher runs first");
    app.add_option("--note", run_.note, "Note about the server's own options, for the report");
    app.callback([this] {
      if (mode_ != "image") run_.modes.push_back(VideoMode::kTextToVideo);
      if (mode_ != "text") {
        run_.modes.push_back(VideoMode::kImageToVideo);
        if (run_.images.empty()) {
          run_.images = std::filesystem::path(run_.scenes).replace_filename("first_frames");
        }
      }
      if (!solver_.empty()) run_.solver = *client::ParseSolver(solver_);
      if (!quality_.empty()) run_.quality = *client::ParseQuality(quality_);
      if (!size_.empty()) {
        const absl::StatusOr<wan::v1::Shape> size = client::ParseSize(size_);
        run_.width = size->width();
        run_.height = size->height();
      }
      chosen_ = [this](const Environment& environment) { return Run(run_, environment); };
    });
  }

  void AddCompare() {
    CLI::App& app =
        *app_.add_subcommand("compare", "Show how far B's figures are from A's, and how surely");
    app.add_option("A", compare_.a, "report.json of a run, or the --json of detect")->required();
    app.add_option("B", compare_.b, "Another, of the same scenes")->required();
    app.callback([this] {
      chosen_ = [this](const Environment& environment) { return Compare(compare_, environment); };
    });
  }

  void AddColumns() {
    CLI::App& app = *app_.add_subcommand(
        "columns",
        "Show runs as the columns of one table, with the PSNR to the first one's videos");
    app.add_option("RUN", columns_.runs, "Folders of runs of the same scenes")
        ->required()
        ->expected(2, -1);
    app.callback([this] {
      chosen_ = [this](const Environment& environment) { return Columns(columns_, environment); };
    });
  }

  CLI::App app_{"Measures how well videos of the demo's world show what their captions ask for."};
  DetectOptions detect_;
  RunOptions run_;
  std::string mode_ = "text";
  std::string size_;
  std::string solver_;
  std::string quality_;
  CompareOptions compare_;
  ColumnsOptions columns_;
  std::function<int(const Environment&)> chosen_;
};

}  // namespace

void Say(const Environment& environment, absl::string_view text) {
  environment.err << "demo_evaluate: " << text << "\n" << std::flush;
}

int RunDemoEvaluate(const std::vector<std::string>& args, const Environment& environment) {
  return CommandLine().Execute(args, environment);
}

}  // namespace wan::demo
