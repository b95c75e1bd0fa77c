// Measures seconds and memory of one pass of a video through the autoencoder, chunk by chunk.
//
//   wan_bench_vae --device cuda:0 --precision tf32 --size 1280x704 --frames 121 --trace
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
#include "benchmarks/vae_compare.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/models/wan/vae.h"

namespace wan {
namespace {

struct Settings {
  std::string model = "synthetic:ti2v-5b";
  std::string device = "cuda:0";
  std::string precision = "tf32";
  FrameSize size;
  int64_t frames = 121;
  int repeats = 2;
  bool encode = false;
  bool trace = false;
  bool compare = false;
  int clips = 0;
};

// Of one pass.
struct Times {
  double total = 0;
  std::vector<double> chunks;  // of a decoding
};

absl::StatusOr<Times> RunOnce(const VideoAutoencoder& vae, const at::Tensor& input, bool encode,
                              at::Device device) {
  Times times;
  Synchronize(device);
  const auto begin = std::chrono::steady_clock::now();
  if (encode) {
    if (absl::Status status = vae.Encode(input, {}).status(); !status.ok()) return status;
  } else {
    auto chunk_begin = begin;
    const absl::Status status = vae.Decode(input,
                                           [&](const at::Tensor&) {
                                             Synchronize(device);
                                             times.chunks.push_back(SecondsSince(chunk_begin));
                                             chunk_begin = std::chrono::steady_clock::now();
                                             return absl::OkStatus();
                                           },
                                           {});
    if (!status.ok()) return status;
  }
  Synchronize(device);
  times.total = SecondsSince(begin);
  return times;
}

absl::Status Run(const Settings& settings) {
  const c10::InferenceMode inference;
  const absl::StatusOr<at::Device> device = OpenDevice(settings.device);
  if (!device.ok()) return device.status();
  const auto checkpoint = Checkpoint::Open(settings.model);
  if (!checkpoint.ok()) return checkpoint.status();
  const auto vae =
      LoadWanVae((*checkpoint)->vae(), (*checkpoint)->vae_config(),
                 {.device = *device, .precision = ParseVaePrecision(settings.precision).value()});
  if (!vae.ok()) return vae.status();
  std::printf("%s, %s on %s: weights %.2f GiB\n", settings.model.c_str(),
              settings.precision.c_str(), settings.device.c_str(),
              static_cast<double>((*vae)->WeightBytes()) / kGiB);

  if (settings.compare) {
    return ComparePrecisions(**vae, {settings.size, settings.frames, settings.clips}, *device);
  }
  const VaeConfig& config = (*vae)->config();
  const auto options = at::TensorOptions(*device).dtype(at::kFloat);
  const at::Tensor input =
      settings.encode
          ? at::randn({3, settings.frames, settings.size.height, settings.size.width}, options)
                .clamp_(-1, 1)
          : at::randn({config.z_dim, (settings.frames - 1) / config.stride_temporal + 1,
                       settings.size.height / config.stride_spatial,
                       settings.size.width / config.stride_spatial},
                      options);
  const char* const pass = settings.encode ? "encode" : "decode";
  std::printf("%s %ldx%ld, %ld frames\n", pass, static_cast<long>(settings.size.width),
              static_cast<long>(settings.size.height), static_cast<long>(settings.frames));

  const int64_t resident = CurrentBytes(*device);
  ResetPeakBytes(*device);
  for (int i = 0; i < settings.repeats; ++i) {
    const absl::StatusOr<Times> times = RunOnce(**vae, input, settings.encode, *device);
    if (!times.ok()) return times.status();
    std::printf("%s: %.3f s", pass, times->total);
    if (!times->chunks.empty()) {
      const size_t middle = times->chunks.size() / 2;
      std::printf(", first chunk %.3f s, middle one %.3f s", times->chunks.front(),
                  times->chunks[middle]);
    }
    std::printf("\n");
  }
  PrintMemory(*device, resident);

  if (settings.trace) {
    OpTrace trace(*device);
    const absl::StatusOr<Times> times = RunOnce(**vae, input, settings.encode, *device);
    const std::vector<OpTime> operators = trace.Finish();
    if (!times.ok()) return times.status();
    PrintTrace(times->total, operators);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace wan

int main(int argc, char** argv) {
  wan::Settings settings;
  CLI::App app("Measures one pass of the Wan2.2 autoencoder");
  app.add_option("--model", settings.model, "checkpoint, or synthetic:NAME")->capture_default_str();
  app.add_option("--device", settings.device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--precision", settings.precision)
      ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}))
      ->capture_default_str();
  std::string size = "1280x704";
  app.add_option("--size", size, "pixels, WIDTHxHEIGHT")->capture_default_str();
  app.add_option("--frames", settings.frames, "4n+1")->capture_default_str();
  app.add_option("--repeats", settings.repeats)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--encode", settings.encode, "encode instead of decode");
  app.add_flag("--trace", settings.trace, "also print the device's time in each operator");
  app.add_flag("--compare", settings.compare,
               "instead of timing, compare what each precision decodes with fp32");
  app.add_option("--clips", settings.clips,
                 "with --compare: so many drawn clips, encoded in fp32; 0: random latents")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const std::optional<wan::FrameSize> parsed = wan::ParseSize(size);
  if (!parsed.has_value()) return 2;
  settings.size = *parsed;
  return wan::ReportErrors([&] { return wan::Run(settings); });
}
