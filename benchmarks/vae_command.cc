// Measures how long a video takes to pass through the autoencoder, chunk by chunk, and how much
// memory.
//
//   wan_bench vae --device cuda:0 --precision fp16 --shape 1280x704x121 --trace
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/commands.h"
#include "benchmarks/vae_compare.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/costs/wan/vae_cost.h"
#include "engine/models/wan/vae.h"

namespace wan {
namespace {

struct VaeSettings {
  std::string model = "synthetic:ti2v-5b";
  std::string device = "cuda:0";
  std::vector<std::string> precisions = {"fp16"};
  std::string shape = BenchShape().Name();
  Repetition repetition = {.warmup = 1, .repeats = 2};
  bool encode = false;
  bool trace = false;
  bool compare = false;
  int clips = 0;
};

// Passes one video through the autoencoder. If the pass decodes, appends the seconds of each chunk
// to `chunks`.
absl::Status RunOnce(const VideoAutoencoder& vae, const at::Tensor& input, bool encode,
                     VaePrecision precision, std::vector<double>& chunks) {
  if (encode) return vae.Encode(input, {{}, precision}).status();
  chunks.clear();
  auto begin = std::chrono::steady_clock::now();
  return vae.Decode(input,
                    [&](const at::Tensor&) {
                      Synchronize(input.device());
                      chunks.push_back(SecondsSince(begin));
                      begin = std::chrono::steady_clock::now();
                      return absl::OkStatus();
                    },
                    {{}, precision});
}

absl::Status Measure(const VaeSettings& settings, const Checkpoint& checkpoint,
                     const BenchShape& shape, const std::string& precision, Session& session) {
  const at::Device device = session.device();
  const auto vae = LoadWanVae(checkpoint.vae(), checkpoint.vae_config(), {.device = device});
  if (!vae.ok()) return vae.status();
  if (settings.compare) {
    return ComparePrecisions(**vae, {shape, settings.clips}, session);
  }
  const VaeConfig& config = (*vae)->config();
  const auto options = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor input =
      settings.encode
          ? at::randn({3, shape.frames, shape.height, shape.width}, options).clamp_(-1, 1)
          : at::randn({config.z_dim, (shape.frames - 1) / config.stride_temporal + 1,
                       shape.height / config.stride_spatial, shape.width / config.stride_spatial},
                      options);
  const std::string name = absl::StrCat(settings.model, " ", settings.encode ? "encode" : "decode",
                                        " ", shape.Name(), " ", precision);
  const int64_t resident = CurrentBytes(device);
  ResetPeakBytes(device);
  std::vector<double> chunks;
  const auto pass = [&, in = ParseVaePrecision(precision).value()] {
    return RunOnce(**vae, input, settings.encode, in, chunks);
  };
  absl::StatusOr<BenchRow> row = session.Repeat(name, settings.repetition, pass);
  if (!row.ok()) return row.status();
  const LatentSize latents{(shape.frames - 1) / config.stride_temporal + 1,
                           shape.height / config.stride_spatial,
                           shape.width / config.stride_spatial};
  // Attention counts as products: the ceiling of attention was measured on long sequences, and does
  // not apply here.
  row->work = Work{.product_flop = settings.encode ? EncodingFlops(config, latents)
                                                   : DecodingFlops(config, latents),
                   .precision = precision};
  if (!chunks.empty()) {
    row->figures = {{"first_chunk_seconds", chunks.front()},
                    {"middle_chunk_seconds", chunks[chunks.size() / 2]}};
  }
  AddMemory(device, resident, *row);
  if (absl::Status status = session.Add(*std::move(row)); !status.ok()) return status;
  return settings.trace ? session.Trace(name, pass) : absl::OkStatus();
}

absl::StatusOr<bool> Run(const VaeSettings& settings, Session& session) {
  const c10::InferenceMode inference;
  const absl::StatusOr<BenchShape> shape = ParseShape(settings.shape);
  if (!shape.ok()) return shape.status();
  if (const auto device = session.Open(settings.device); !device.ok()) return device.status();
  if (!settings.compare) {
    if (absl::Status status = session.FindCeilings(); !status.ok()) return status;
  }
  const auto checkpoint = Checkpoint::Open(settings.model);
  if (!checkpoint.ok()) return checkpoint.status();
  const VaeConfig& config = (*checkpoint)->vae_config();
  if (absl::Status status = CheckShape(*shape, config.stride_spatial, config.stride_temporal);
      !status.ok()) {
    return status;
  }
  for (const std::string& precision : settings.precisions) {
    absl::Status status = Measure(settings, **checkpoint, *shape, precision, session);
    if (!status.ok()) return status;
    if (settings.compare) break;  // --compare has already measured all precisions
  }
  return true;
}

}  // namespace

BenchCommand AddVae(CLI::App& app) {
  const auto settings = std::make_shared<VaeSettings>();
  AddModelFlag(app, settings->model);
  AddDeviceFlag(app, settings->device);
  app.add_option("--precision", settings->precisions, "may be repeated")
      ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}))
      ->capture_default_str();
  AddShapeFlag(app, settings->shape, "WIDTHxHEIGHTxFRAMES, frames 4n+1");
  AddRepeatsFlag(app, settings->repetition.repeats);
  AddWarmupFlag(app, settings->repetition.warmup);
  AddSecondsFlag(app, settings->repetition.seconds);
  app.add_flag("--encode", settings->encode, "encode instead of decode");
  app.add_flag("--trace", settings->trace, "also the device's time in each operator");
  app.add_flag("--compare", settings->compare,
               "instead of timing, compare what each precision decodes with fp32");
  app.add_option("--clips", settings->clips,
                 "with --compare: so many drawn clips, encoded in fp32; 0: random latents")
      ->capture_default_str();
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
