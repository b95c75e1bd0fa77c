// Measures seconds and memory of one forward pass of the transformer. A step with guidance takes
// two.
//
//   wan_bench_transformer --device cuda:0 --size 1280x704 --frames 121 --trace
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "benchmarks/harness.h"
#include "benchmarks/op_trace.h"
#include "benchmarks/transformer_compare.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/models/wan/transformer.h"
#include "engine/models/wan/transformer_cost.h"

namespace wan {
namespace {

struct Settings {
  std::string model = "synthetic:ti2v-5b";
  std::string device = "cuda:0";
  std::string dtype = "bf16";
  FrameSize size;
  int64_t frames = 121;
  int64_t batch = 1;
  int repeats = 5;
  int warmup = 2;
  int64_t text_rows = 128;
  bool first_frame = false;
  bool trace = false;
  std::string residency = "resident";
  std::string compare;
};

// Says how long weights in host memory take to the device.
absl::Status BringUp(ComponentWeights& weights, bool stream, at::Device device) {
  for (int i = 0; i < 2; ++i) {
    weights.Park();
    Synchronize(device);
    const auto begin = std::chrono::steady_clock::now();
    weights.BringUp();
    const double queued = SecondsSince(begin);
    weights.UseAll();
    Synchronize(device);
    const double seconds = SecondsSince(begin);
    const double gib = static_cast<double>(weights.Sizes().total) / kGiB;
    std::printf("brought up: %.4f s (queued in %.4f s), %.2f GiB/s\n", seconds, queued,
                gib / seconds);
  }
  if (!stream) return absl::OkStatus();
  weights.Park();
  weights.Stream();
  std::printf("streamed: %.2f GiB stay on the device\n",
              static_cast<double>(weights.DeviceBytes()) / kGiB);
  return absl::OkStatus();
}

absl::Status Run(const Settings& settings) {
  const c10::InferenceMode inference;
  absl::StatusOr<at::Device> device = OpenDevice(settings.device);
  if (!device.ok()) return device.status();
  auto checkpoint = Checkpoint::Open(settings.model);
  if (!checkpoint.ok()) return checkpoint.status();

  auto start = std::chrono::steady_clock::now();
  const at::ScalarType dtype = settings.dtype == "fp32" ? at::kFloat : at::kBFloat16;
  const bool is_resident = settings.residency == "resident" && settings.compare != "streaming";
  const auto weights = std::make_shared<ComponentWeights>(
      MakeWeightMover(*device),
      is_resident ? ComponentWeights::Home::kDevice : ComponentWeights::Home::kHost);
  auto transformer =
      LoadWanTransformer((*checkpoint)->transformer(), (*checkpoint)->transformer_config(),
                         {.device = *device, .dtype = dtype, .weights = weights});
  if (!transformer.ok()) return transformer.status();
  Synchronize(*device);
  std::printf("%s, %s on %s: loaded in %.2f s, weights %.2f GiB\n", settings.model.c_str(),
              settings.dtype.c_str(), settings.device.c_str(), SecondsSince(start),
              static_cast<double>((*transformer)->WeightBytes()) / kGiB);

  const TransformerConfig& config = (*transformer)->config();
  const VaeConfig& vae = (*checkpoint)->vae_config();
  const auto options = at::TensorOptions(*device).dtype(at::kFloat);
  const at::Tensor latents = at::randn(
      {settings.batch, config.in_channels, (settings.frames - 1) / vae.stride_temporal + 1,
       settings.size.height / vae.stride_spatial, settings.size.width / vae.stride_spatial},
      options);
  const auto [p, q, r] = config.patch_size;
  const int64_t tokens_per_frame = latents.size(3) / q * (latents.size(4) / r);
  const int64_t tokens = latents.size(2) / p * tokens_per_frame;
  at::Tensor timestep = at::full({settings.batch, tokens}, 900.0, at::kFloat);
  if (settings.first_frame) timestep.narrow(1, 0, tokens_per_frame).zero_();

  if (!settings.compare.empty()) {
    const ComparedForward compared{**transformer, *weights, *device,
                                   latents,       timestep, settings.repeats};
    if (settings.compare == "streaming") return CompareStreaming(compared);
    if (settings.compare == "guidance") return CompareGuidance(compared);
    return CompareGate(compared);
  }
  if (!is_resident) {
    if (absl::Status status = BringUp(*weights, settings.residency == "stream", *device);
        !status.ok()) {
      return status;
    }
  }
  const std::vector<at::Tensor> contexts(settings.batch,
                                         at::randn({settings.text_rows, config.text_dim}, options));
  auto text = (*transformer)->PrepareText(contexts);
  if (!text.ok()) return text.status();
  const auto forward = [&]() -> absl::StatusOr<double> {
    Synchronize(*device);
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status status = (*transformer)->Forward(latents, timestep, **text).status();
    if (!status.ok()) return status;
    Synchronize(*device);
    return SecondsSince(begin);
  };

  std::printf("%ldx%ld, %ld frames, batch %ld: %ld tokens, text %.2f GiB\n",
              static_cast<long>(settings.size.width), static_cast<long>(settings.size.height),
              static_cast<long>(settings.frames), static_cast<long>(settings.batch),
              static_cast<long>(tokens), static_cast<double>((*text)->Bytes()) / kGiB);
  for (int i = 0; i < settings.warmup; ++i) {
    const absl::StatusOr<double> seconds = forward();
    if (!seconds.ok()) return seconds.status();
    std::printf("warm-up %d: %.4f s\n", i + 1, *seconds);
  }

  const int64_t resident = CurrentBytes(*device);
  ResetPeakBytes(*device);
  std::vector<double> seconds;
  for (int i = 0; i < settings.repeats; ++i) {
    const absl::StatusOr<double> one = forward();
    if (!one.ok()) return one.status();
    seconds.push_back(*one);
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const double flop = TransformerForwardFlops(config, tokens, settings.batch);
  std::printf("forward: median %.4f s of %d (%.4f to %.4f), %.1f TFLOP, %.0f TFLOP/s\n", median,
              settings.repeats, seconds.front(), seconds.back(), flop / 1e12, flop / median / 1e12);
  PrintMemory(*device, resident);

  if (settings.trace) {
    OpTrace trace(*device);
    const absl::StatusOr<double> one = forward();
    const std::vector<OpTime> times = trace.Finish();
    if (!one.ok()) return one.status();
    PrintTrace(*one, times);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace wan

int main(int argc, char** argv) {
  wan::Settings settings;
  CLI::App app("Measures one forward pass of the Wan2.2 transformer");
  app.add_option("--model", settings.model, "checkpoint, or synthetic:NAME")->capture_default_str();
  app.add_option("--device", settings.device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--dtype", settings.dtype)
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->capture_default_str();
  std::string size = "1280x704";
  app.add_option("--size", size, "pixels, WIDTHxHEIGHT")->capture_default_str();
  app.add_option("--frames", settings.frames, "4n+1")->capture_default_str();
  app.add_option("--batch", settings.batch)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--text-rows", settings.text_rows, "tokens of the prompt")->capture_default_str();
  app.add_option("--repeats", settings.repeats)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--warmup", settings.warmup)->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--residency", settings.residency, "where the weights live")
      ->check(CLI::IsMember({"resident", "host", "stream"}))
      ->capture_default_str();
  app.add_option(
         "--compare", settings.compare,
         "compares instead: streamed with resident weights, one batch of two texts with two "
         "forward passes, or forward passes that can be stopped with those that cannot")
      ->check(CLI::IsMember({"streaming", "guidance", "gate"}));
  app.add_flag("--first-frame", settings.first_frame,
               "treat the first frame as given: its tokens have timestep 0");
  app.add_flag("--trace", settings.trace, "also print the device's time in each operator");
  CLI11_PARSE(app, argc, argv);
  const std::optional<wan::FrameSize> parsed = wan::ParseSize(size);
  if (!parsed.has_value()) return 2;
  settings.size = *parsed;
  return wan::ReportErrors([&] { return wan::Run(settings); });
}
