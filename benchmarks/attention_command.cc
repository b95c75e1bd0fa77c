// Speed and error of attention: the kernel that the engine chooses, beside cuDNN's in the same run.
//
//   wan_bench attention --device cuda:0 --seconds 3
#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/commands.h"
#include "engine/ops/attention.h"

namespace wan {
namespace {

constexpr int64_t kHeadDim = 128;
// Queries whose error is measured: those of one head, at the end of the sequence.
constexpr int64_t kCheckedQueries = 512;

struct Shape {
  const char* name;
  int64_t heads;
  int64_t queries;
  int64_t keys;
};

constexpr Shape kShapes[] = {
    {"TI2V-5B 1280x704x121", 24, 27280, 27280},
    {"A14B 832x480x81", 40, 32760, 32760},
    {"A14B 1280x720x81", 40, 75600, 75600},
    {"1024 tokens", 24, 1024, 1024},
    {"4096 tokens", 24, 4096, 4096},
    {"5B to the text", 24, 27280, 512},
};

struct AttentionSettings {
  std::string device = "cuda:0";
  double seconds = 3;
  std::vector<int64_t> tokens;
};

at::Tensor Cudnn(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return std::get<0>(at::_scaled_dot_product_cudnn_attention(
                         query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2),
                         /*attn_bias=*/std::nullopt, /*compute_log_sumexp=*/false))
      .transpose(1, 2);
}

// |actual - expected| / |expected| of the last queries of head 0, in fp32.
double Error(const at::Tensor& actual, const at::Tensor& query, const at::Tensor& key,
             const at::Tensor& value) {
  const int64_t rows = std::min(kCheckedQueries, query.size(1));
  const auto head = [](const at::Tensor& t) { return t.select(2, 0).select(0, 0).to(at::kFloat); };
  const auto last = [&](const at::Tensor& t) { return head(t.narrow(1, t.size(1) - rows, rows)); };
  const at::Tensor scores =
      at::matmul(last(query), head(key).t()) / std::sqrt(static_cast<double>(kHeadDim));
  const at::Tensor expected = at::matmul(at::softmax(scores, -1), head(value));
  return ((last(actual) - expected).norm() / expected.norm()).item().toDouble();
}

absl::Status Measure(const Shape& shape, double seconds, Session& session) {
  const bool cpu = session.device().is_cpu();
  const at::TensorOptions options =
      at::TensorOptions(session.device()).dtype(cpu ? at::kFloat : at::kBFloat16);
  // Self-attention reads the thirds of one packed product, as in the model.
  const bool packed = shape.queries == shape.keys;
  const at::Tensor product = at::randn({1, shape.keys, 3, shape.heads, kHeadDim}, options);
  const at::Tensor query =
      packed ? product.select(2, 0) : at::randn({1, shape.queries, shape.heads, kHeadDim}, options);
  const at::Tensor key = product.select(2, 1);
  const at::Tensor value = product.select(2, 2);
  Work work{.precision = cpu ? "fp32" : "bf16"};
  work.attention_flop = 4.0 * static_cast<double>(shape.queries) *
                        static_cast<double>(shape.keys * shape.heads * kHeadDim);
  struct Kernel {
    const char* name;
    at::Tensor (*run)(const at::Tensor&, const at::Tensor&, const at::Tensor&);
  };
  std::vector<Kernel> kernels = {{"the engine's", &Attention}};
  if (!cpu) kernels.push_back({"cuDNN's", &Cudnn});
  std::vector<double> measured;
  for (const Kernel& kernel : kernels) {
    BenchRow row = session.Sustain(absl::StrCat(shape.name, ", ", kernel.name), seconds,
                                   [&] { kernel.run(query, key, value); });
    row.work = work;
    row.figures = {{"queries", shape.queries},
                   {"keys", shape.keys},
                   {"heads", shape.heads},
                   {"error", Error(kernel.run(query, key, value), query, key, value)}};
    measured.push_back(row.timing->seconds);
    if (measured.size() > 1) row.figures.push_back({"slower_by", measured[1] / measured[0]});
    if (absl::Status status = session.Add(std::move(row)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Run(const AttentionSettings& settings, Session& session) {
  const c10::InferenceMode inference;
  if (const auto device = session.Open(settings.device); !device.ok()) return device.status();
  if (absl::Status status = session.FindCeilings(); !status.ok()) return status;
  std::vector<Shape> shapes(std::begin(kShapes), std::end(kShapes));
  if (!settings.tokens.empty()) shapes.clear();
  std::vector<std::string> names;
  names.reserve(settings.tokens.size());
  for (const int64_t tokens : settings.tokens) {
    names.push_back(absl::StrCat(tokens, " tokens"));
    shapes.push_back({names.back().c_str(), 24, tokens, tokens});
  }
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
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
