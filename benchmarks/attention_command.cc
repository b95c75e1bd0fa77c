// Measures speed and error of attention: runs the kernel that the engine chooses and cuDNN's kernel
// in the same process.
//
//   wan_bench attention --device cuda:0 --seconds 3
//   wan_bench attention --device cuda:0 --errors
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/attention_kernels.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/commands.h"

namespace wan {
namespace {

// Number of queries of one head for which the printed error is computed.
constexpr int64_t kCheckedQueries = 512;

struct Shape {
  std::string name;
  int64_t heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t head_dim = kTransformerHeadDim;
};

const Shape kShapes[] = {
    {"TI2V-5B 1280x704x121", 24, 27280, 27280},
    {"A14B 832x480x81", 40, 32760, 32760},
    {"A14B 1280x720x81", 40, 75600, 75600},
    {"512 tokens", 24, 512, 512},
    {"1024 tokens", 24, 1024, 1024},
    {"1560 tokens", 24, 1560, 1560},
    {"4096 tokens", 24, 4096, 4096},
    {"5B to the text", 24, 27280, 512},
    {"A14B 832x480x81 to the text", 40, 32760, 512},
    {"A14B 1280x720x81 to the text", 40, 75600, 512},
    // One query per pixel of a frame in the autoencoders' middle block (FrameAttention in
    // vae_layers.cc).
    {"VAE 2.1 1280x720", 1, 14400, 14400, 384},
    {"VAE 2.2 1280x704", 1, 3520, 3520, 1024},
};

struct AttentionSettings {
  std::string device = "cuda:0";
  double seconds = 3;
  std::vector<int64_t> tokens;
  std::string only;
  bool errors = false;
};

// As in the models, queries, keys and values are the three parts of one packed product. The
// autoencoders compute in fp16 by default.
AttentionInputs MakeInputs(const Shape& shape, at::Device device) {
  at::ScalarType dtype = shape.head_dim == kTransformerHeadDim ? at::kBFloat16 : at::kHalf;
  if (device.is_cpu()) dtype = at::kFloat;
  const at::TensorOptions options = at::TensorOptions(device).dtype(dtype);
  const at::Tensor product = at::randn({1, shape.keys, 3, shape.heads, shape.head_dim}, options);
  return {shape.queries == shape.keys
              ? product.select(2, 0)
              : at::randn({1, shape.queries, shape.heads, shape.head_dim}, options),
          product.select(2, 1), product.select(2, 2)};
}

Work WorkOf(const Shape& shape, at::Device device) {
  const double flop = 4.0 * static_cast<double>(shape.queries) *
                      static_cast<double>(shape.keys * shape.heads * shape.head_dim);
  // Attention with other head sizes counts as products, because the ceiling of attention does not
  // apply to it.
  if (shape.head_dim != kTransformerHeadDim) {
    return {.product_flop = flop, .precision = device.is_cpu() ? "fp32" : "fp16"};
  }
  return {.attention_flop = flop, .precision = device.is_cpu() ? "fp32" : "bf16"};
}

absl::Status Measure(const Shape& shape, double seconds, Session& session) {
  const AttentionInputs in = MakeInputs(shape, session.device());
  std::vector<double> measured;
  for (const NamedAttention& kernel : KernelsFor(in)) {
    BenchRow row = session.Sustain(absl::StrCat(shape.name, ", ", kernel.name), seconds,
                                   [&] { kernel.run(in); });
    row.work = WorkOf(shape, session.device());
    row.figures = {{"queries", shape.queries},
                   {"keys", shape.keys},
                   {"heads", shape.heads},
                   {"error", AttentionError(kernel.run(in), in, kCheckedQueries, 1)}};
    measured.push_back(row.timing->seconds);
    if (measured.size() > 1) row.figures.push_back({"slower_by", measured.back() / measured[0]});
    if (absl::Status status = session.Add(std::move(row)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<Shape> ShapesOf(const AttentionSettings& settings) {
  std::vector<Shape> shapes;
  for (const int64_t tokens : settings.tokens) {
    shapes.push_back({absl::StrCat(tokens, " tokens"), 24, tokens, tokens});
  }
  if (!shapes.empty()) return shapes;
  for (const Shape& shape : kShapes) {
    if (absl::StrContains(shape.name, settings.only)) shapes.push_back(shape);
  }
  return shapes;
}

// Measures the published sizes unless --tokens names others.
std::vector<SelfAttentionSize> SizesOf(const AttentionSettings& settings) {
  std::vector<SelfAttentionSize> sizes;
  for (const int64_t tokens : settings.tokens) sizes.push_back({24, tokens});
  if (sizes.empty()) sizes = {{24, 27280}, {40, 32760}, {40, 75600}};
  return sizes;
}

absl::StatusOr<bool> Run(const AttentionSettings& settings, Session& session) {
  const c10::InferenceMode inference;
  if (const auto device = session.Open(settings.device); !device.ok()) return device.status();
  if (settings.errors) {
    if (absl::Status status = AddAttentionErrors(SizesOf(settings), session); !status.ok()) {
      return status;
    }
    return true;
  }
  const std::vector<Shape> shapes = ShapesOf(settings);
  if (shapes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--only is '", settings.only, "', which no shape's name contains"));
  }
  if (absl::Status status = session.FindCeilings(); !status.ok()) return status;
  for (const Shape& shape : shapes) {
    if (absl::Status status = Measure(shape, settings.seconds, session); !status.ok()) {
      return status;
    }
  }
  return true;
}

}  // namespace

BenchCommand AddAttention(CLI::App& app) {
  const auto settings = std::make_shared<AttentionSettings>();
  AddDeviceFlag(app, settings->device);
  app.add_option("--seconds", settings->seconds, "how long each measurement takes at least")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--tokens", settings->tokens,
                 "self-attention of 24 heads over so many tokens instead; may be repeated")
      ->check(CLI::PositiveNumber);
  app.add_option("--only", settings->only, "only the shapes whose name contains this text");
  app.add_flag("--errors", settings->errors,
               "no times, but the error against fp32 on normal and on hard inputs");
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
