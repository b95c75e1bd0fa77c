// Measures how long one forward pass of the transformer takes, and how much memory. A step with
// guidance consists of two forwards.
//
//   wan_bench forward --device cuda:0 --shape 1280x704x121 --seconds 60
//   wan_bench forward --device cuda:0 --shape 1280x704x121 --trace
#include <c10/core/InferenceMode.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/benched_transformer.h"
#include "benchmarks/commands.h"
#include "benchmarks/forward_compare.h"
#include "engine/api/exact_blocks.h"

namespace wan {
namespace {

struct ForwardSettings {
  std::string model = "synthetic:ti2v-5b";
  std::string device = "cuda:0";
  std::string dtype = "bf16";
  std::string shape = BenchShape().Name();
  int64_t batch = 1;
  Repetition repetition = {.warmup = 2, .repeats = 5};
  int64_t text_rows = 128;
  bool first_frame = false;
  bool trace = false;
  std::string residency = "resident";
  std::string compare;
  std::string quality = "exact";
  std::string exact_blocks;  // the blocks that compute exactly in a video of quality high or fast
};

// Moves weights from host memory to the device, and prints how long that takes.
absl::Status BringUp(ComponentWeights& weights, bool stream, Session& session) {
  const at::Device device = session.device();
  double queued = 0;
  absl::StatusOr<BenchRow> row = session.Repeat("weights to the device", {.repeats = 2}, [&] {
    weights.Park();
    Synchronize(device);
    const auto begin = std::chrono::steady_clock::now();
    weights.BringUp();
    queued = SecondsSince(begin);
    weights.UseAll();
    return absl::OkStatus();
  });
  if (!row.ok()) return row.status();
  row->figures = {{"weights_gib", static_cast<double>(weights.Sizes().total) / kGiB},
                  {"queued_seconds", queued}};
  if (absl::Status status = session.Add(*std::move(row)); !status.ok()) return status;
  if (!stream) return absl::OkStatus();
  weights.Park();
  weights.Stream();
  session.Note(absl::StrFormat("streamed: %.2f GiB stay on the device",
                               static_cast<double>(weights.DeviceBytes()) / kGiB));
  return absl::OkStatus();
}

std::string NameOf(const ForwardSettings& settings) {
  std::string name = absl::StrCat(settings.model, " ", settings.shape, " ", settings.dtype);
  if (settings.batch != 1) absl::StrAppend(&name, ", batch ", settings.batch);
  if (settings.first_frame) name += ", first frame given";
  if (settings.quality != "exact") absl::StrAppend(&name, ", ", settings.quality);
  if (!settings.exact_blocks.empty()) {
    absl::StrAppend(&name, ", exact blocks ", settings.exact_blocks);
  }
  if (settings.residency != "resident") absl::StrAppend(&name, ", ", settings.residency);
  return name;
}

absl::StatusOr<bool> Run(const ForwardSettings& settings, Session& session) {
  const c10::InferenceMode inference;
  const absl::StatusOr<BenchShape> shape = ParseShape(settings.shape);
  if (!shape.ok()) return shape.status();
  const absl::StatusOr<at::Device> device = session.Open(settings.device);
  if (!device.ok()) return device.status();
  if (absl::Status status = session.FindCeilings(); !status.ok()) return status;
  const bool is_resident = settings.residency == "resident" && settings.compare != "streaming";
  const absl::StatusOr<BenchedTransformer> loaded = LoadToBench(
      session,
      {.model = settings.model,
       .dtype = settings.dtype,
       .shape = *shape,
       .batch = settings.batch,
       .first_frame = settings.first_frame,
       .home = is_resident ? ComponentWeights::Home::kDevice : ComponentWeights::Home::kHost});
  if (!loaded.ok()) return loaded.status();
  const BenchedTransformer& benched = *loaded;
  const std::string name = NameOf(settings);
  const absl::StatusOr<ExactBlocks> blocks = ExactBlocks::Parse(settings.exact_blocks);
  if (!blocks.ok()) return blocks.status();
  const ForwardPolicy rounded{
      .eight_bits = true,
      .exact_blocks = blocks->In(static_cast<int>(benched.transformer->config().num_layers))};
  if (!settings.compare.empty()) {
    return CompareForwards({settings.compare, name, rounded}, benched, settings.repetition.repeats,
                           session);
  }
  if (!is_resident) {
    const bool stream = settings.residency == "stream";
    if (absl::Status status = BringUp(*benched.weights, stream, session); !status.ok()) {
      return status;
    }
  }
  const auto text = benched.PrepareTexts(settings.batch, settings.text_rows);
  if (!text.ok()) return text.status();
  const auto forward = [&] {
    return benched.transformer
        ->Forward(benched.latents, benched.timestep, **text, {},
                  settings.quality == "high" ? rounded : ForwardPolicy())
        .status();
  };
  const int64_t resident = CurrentBytes(*device);
  ResetPeakBytes(*device);
  absl::StatusOr<BenchRow> row = session.Repeat(name, settings.repetition, forward);
  if (!row.ok()) return row.status();
  row->work = benched.ForwardWork(settings.dtype);
  row->figures = {{"tokens", benched.tokens}};
  AddMemory(*device, resident, *row);
  if (absl::Status status = session.Add(*std::move(row)); !status.ok()) return status;
  if (!settings.trace) return true;
  if (absl::Status status = session.Trace(name, forward); !status.ok()) return status;
  return true;
}

}  // namespace

BenchCommand AddForward(CLI::App& app) {
  const auto settings = std::make_shared<ForwardSettings>();
  AddModelFlag(app, settings->model);
  AddDeviceFlag(app, settings->device);
  AddDtypeFlag(app, settings->dtype);
  AddShapeFlag(app, settings->shape);
  app.add_option("--batch", settings->batch)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--text-rows", settings->text_rows, "tokens of the prompt")->capture_default_str();
  AddRepeatsFlag(app, settings->repetition.repeats);
  AddWarmupFlag(app, settings->repetition.warmup);
  AddSecondsFlag(app, settings->repetition.seconds);
  app.add_option("--residency", settings->residency, "where the weights live")
      ->check(CLI::IsMember({"resident", "host", "stream"}))
      ->capture_default_str();
  app.add_option(
         "--compare", settings->compare,
         "compares instead: streamed with resident weights, one batch of two texts with two "
         "forward passes, forward passes that can be stopped with those that cannot, or forward "
         "passes of 8 bits with exact ones, block by block")
      ->check(CLI::IsMember({"streaming", "guidance", "gate", "quality"}));
  app.add_option("--quality", settings->quality, "high computes with 8 bits")
      ->check(CLI::IsMember({"exact", "high"}))
      ->capture_default_str();
  app.add_option("--exact-blocks", settings->exact_blocks,
                 "blocks that stay exact with 8 bits, for example 0,4-5,last");
  app.add_flag("--first-frame", settings->first_frame,
               "treat the first frame as given: its tokens have timestep 0");
  app.add_flag("--trace", settings->trace, "also the device's time in each operator");
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
