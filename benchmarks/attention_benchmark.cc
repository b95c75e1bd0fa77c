// Speed and error of attention: the kernel that the engine chooses, beside cuDNN's in the same run.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <c10/core/InferenceMode.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "benchmarks/harness.h"
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

at::Tensor Cudnn(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return std::get<0>(at::_scaled_dot_product_cudnn_attention(
                         query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2),
                         /*attn_bias=*/std::nullopt, /*compute_log_sumexp=*/false))
      .transpose(1, 2);
}

// Seconds of a call, over at least `seconds` of calls back to back after as many that warm the card
// up as a third of them.
double SecondsPerCall(const std::function<void()>& call, double seconds, at::Device device) {
  const auto timed = [&](int calls) {
    Synchronize(device);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    Synchronize(device);
    return SecondsSince(start);
  };
  timed(1);
  const int calls = std::max(3, static_cast<int>(seconds / timed(1)));
  timed(calls / 3);
  return timed(calls) / calls;
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

absl::Status Run(const std::string& device_name, double seconds) {
  const c10::InferenceMode inference;
  const absl::StatusOr<at::Device> device = OpenDevice(device_name);
  if (!device.ok()) return device.status();
  const at::TensorOptions bf16 = at::TensorOptions(*device).dtype(at::kBFloat16);
  std::printf("%-22s %6s %6s %5s | %10s %7s %9s | %10s %7s %9s | %s\n", "shape", "tokens", "keys",
              "heads", "chosen, ms", "TFLOP/s", "error", "cuDNN, ms", "TFLOP/s", "error",
              "faster by");
  for (const Shape& shape : kShapes) {
    // Self-attention reads the thirds of one packed product, as in the model.
    const bool packed = shape.queries == shape.keys;
    const at::Tensor product = at::randn({1, shape.keys, 3, shape.heads, kHeadDim}, bf16);
    const at::Tensor query =
        packed ? product.select(2, 0) : at::randn({1, shape.queries, shape.heads, kHeadDim}, bf16);
    const at::Tensor key = product.select(2, 1);
    const at::Tensor value = product.select(2, 2);
    const double chosen = SecondsPerCall([&] { Attention(query, key, value); }, seconds, *device);
    const double cudnn = SecondsPerCall([&] { Cudnn(query, key, value); }, seconds, *device);
    const double tera = 4e-12 * static_cast<double>(shape.queries) *
                        static_cast<double>(shape.keys * shape.heads * kHeadDim);
    std::printf("%-22s %6ld %6ld %5ld | %10.3f %7.0f %9.2e | %10.3f %7.0f %9.2e | %.3f\n",
                shape.name, shape.queries, shape.keys, shape.heads, chosen * 1e3, tera / chosen,
                Error(Attention(query, key, value), query, key, value), cudnn * 1e3, tera / cudnn,
                Error(Cudnn(query, key, value), query, key, value), cudnn / chosen);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace wan

int main(int argc, char** argv) {
  CLI::App app("Measures attention at the transformers' shapes, beside cuDNN's in the same run.");
  std::string device = "cuda:0";
  double seconds = 3;
  app.add_option("--device", device, "a GPU")->capture_default_str();
  app.add_option("--seconds", seconds, "how long each measurement takes at least")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return wan::ReportErrors([&] { return wan::Run(device, seconds); });
}
