// Peak memory of every stage against the plan's estimate, on the real engine: for each shape a line
// a stage. Ends with 1 if a peak is above its estimate, or more than 5 % below it.
//
//   wan_bench_memory --model synthetic:ti2v-5b --shape 1280x704x121 --shape 832x480x81
//   wan_bench_memory --model synthetic:t2v-a14b --shape 832x480x81 --limit 48 --residency vae=host
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "engine/api/engine_factory.h"
#include "engine/media/image_encode.h"

namespace wan {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// The largest peak of each stage, steps taken together.
class PeakSink final : public TelemetrySink {
 public:
  void OnSpanEnd(const SpanRecord& record) override {
    if (!record.usage.gpu_memory_peak_bytes.has_value()) return;
    uint64_t& peak = peaks[record.stage];
    peak = std::max(peak, *record.usage.gpu_memory_peak_bytes);
    seconds[record.stage] += record.seconds;
  }
  std::map<std::string, uint64_t> peaks;
  std::map<std::string, double> seconds;
};

struct Settings {
  std::string model = "synthetic:ti2v-5b";
  std::string device = "cuda:0";
  std::vector<std::string> shapes = {"1280x704x121"};
  std::vector<std::string> residency;
  double limit_gib = 0;
  int steps = 2;
};

absl::StatusOr<std::vector<ComponentResidency>> ParseResidency(
    const std::vector<std::string>& entries) {
  std::vector<ComponentResidency> residency;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    const auto policy = equals == std::string::npos
                            ? std::nullopt
                            : ParseResidencyPolicy(std::string_view(entry).substr(equals + 1));
    if (!policy.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("'", entry, "' is not COMPONENT=POLICY"));
    }
    residency.push_back({entry.substr(0, equals), *policy});
  }
  return residency;
}

// Returns false if an estimate is wrong.
bool Compare(const GenerationPlan& plan, const PeakSink& sink) {
  bool good = true;
  for (const StagePlan& stage : plan.stages) {
    const auto measured = sink.peaks.find(stage.stage);
    const uint64_t estimate = stage.weight_bytes + stage.activation_bytes;
    if (measured == sink.peaks.end() || estimate == 0) continue;
    const double ratio = static_cast<double>(estimate) / static_cast<double>(measured->second);
    const bool right = ratio >= 1 && ratio <= 1.05;
    good = good && right;
    std::printf(
        "  %-18s estimate %7.3f GiB (weights %7.3f), peak %7.3f GiB, ratio %.4f, %.3f s%s\n",
        stage.stage.c_str(), static_cast<double>(estimate) / kGiB,
        static_cast<double>(stage.weight_bytes) / kGiB,
        static_cast<double>(measured->second) / kGiB, ratio, sink.seconds.at(stage.stage),
        right ? "" : "  WRONG");
  }
  return good;
}

absl::StatusOr<bool> Measure(Engine& engine, const std::string& shape, int steps) {
  GenerationRequest request;
  request.model = "m";
  request.prompt = "A lighthouse at sunset, waves break on the rocks";
  request.steps = steps;
  request.shift = 1;  // so that each expert has a step
  request.seed = 1;
  request.size_is_exact = true;
  int width = 0;
  int height = 0;
  int frames = 0;
  if (std::sscanf(shape.c_str(), "%dx%dx%d", &width, &height, &frames) != 3) {
    return absl::InvalidArgumentError(absl::StrCat("'", shape, "' is not WxHxFRAMES"));
  }
  request.width = width;
  request.height = height;
  request.num_frames = frames;
  if (engine.Models().front().family.starts_with("i2v")) {
    constexpr int kSide = 16;
    absl::StatusOr<std::string> black =
        EncodePng(std::vector<uint8_t>(3 * kSide * kSide), kSide, kSide);
    if (!black.ok()) return black.status();
    request.image = std::make_shared<const std::string>(*std::move(black));
  }
  const absl::StatusOr<GenerationPlan> plan = engine.Plan(request);
  if (absl::IsInvalidArgument(plan.status())) {
    std::printf("%s: refused: %s\n", shape.c_str(), std::string(plan.status().message()).c_str());
    return true;
  }
  if (!plan.ok()) return plan.status();
  std::printf("%s:", shape.c_str());
  for (const ComponentResidency& entry : plan->residency) {
    std::printf(" %s=%s", entry.component.c_str(),
                std::string(ResidencyPolicyName(entry.policy)).c_str());
  }
  std::printf(", tiles %dx%d%s%s\n", plan->decode_tiles.rows, plan->decode_tiles.columns,
              plan->batched_guidance ? ", batched" : "",
              plan->prefetch_experts ? ", prefetching" : "");
  PeakSink sink;
  Recorder recorder(SystemClock(), engine.Monitor(), {&sink});
  GenerationObserver observer;
  if (absl::Status status = engine.Generate(*plan, {}, recorder, observer, {}); !status.ok()) {
    return status;
  }
  return Compare(*plan, sink);
}

absl::StatusOr<bool> Run(const Settings& settings) {
  EngineOptions options;
  options.device = settings.device;
  auto residency = ParseResidency(settings.residency);
  if (!residency.ok()) return residency.status();
  options.residency = *std::move(residency);
  options.device_memory_limit = static_cast<uint64_t>(settings.limit_gib * kGiB);
  absl::StatusOr<std::unique_ptr<Engine>> engine = MakeWanEngine(options);
  if (!engine.ok()) return engine.status();
  PeakSink loading;
  Recorder recorder(SystemClock(), (*engine)->Monitor(), {&loading});
  if (absl::Status status = (*engine)->LoadModel({"m", settings.model}, recorder); !status.ok()) {
    return status;
  }
  for (const auto& [stage, peak] : loading.peaks) {
    std::printf("%s: %s peak %.3f GiB, %.3f s\n", settings.model.c_str(), stage.c_str(),
                static_cast<double>(peak) / kGiB, loading.seconds.at(stage));
  }
  bool good = true;
  for (const std::string& shape : settings.shapes) {
    const absl::StatusOr<bool> right = Measure(**engine, shape, settings.steps);
    if (!right.ok()) return right.status();
    good = good && *right;
  }
  return good;
}

}  // namespace
}  // namespace wan

int main(int argc, char** argv) {
  wan::Settings settings;
  CLI::App app("Compares peak memory of every stage with the plan's estimate");
  app.add_option("--model", settings.model, "checkpoint, or synthetic:NAME")->capture_default_str();
  app.add_option("--device", settings.device, "cpu or cuda:N")->capture_default_str();
  app.add_option("--shape", settings.shapes, "WxHxFRAMES, any number")->capture_default_str();
  app.add_option("--residency", settings.residency, "COMPONENT=POLICY, any number");
  app.add_option("--limit", settings.limit_gib, "GiB of the device to use; 0: all")
      ->capture_default_str();
  app.add_option("--steps", settings.steps)->check(CLI::PositiveNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<bool> good = wan::Run(settings);
  if (!good.ok()) {
    std::fprintf(stderr, "%s\n", good.status().ToString().c_str());
    return 1;
  }
  return *good ? 0 : 1;
}
