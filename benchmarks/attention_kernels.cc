#include "benchmarks/attention_kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ops/attention.h"
#include "engine/ops/cuda_ops.h"
#include "engine/ops/rounded_attention.h"

namespace wan {
namespace {

// Number of queries over which each error in docs/measured/performance.md is computed.
constexpr int64_t kErrorQueries = 1500;
constexpr int64_t kErrorHeads = 2;

at::Tensor Engines(const AttentionInputs& in) { return Attention(in.query, in.key, in.value); }

at::Tensor Cudnn(const AttentionInputs& in) {
  return std::get<0>(at::_scaled_dot_product_cudnn_attention(
                         in.query.transpose(1, 2), in.key.transpose(1, 2), in.value.transpose(1, 2),
                         /*attn_bias=*/std::nullopt, /*compute_log_sumexp=*/false))
      .transpose(1, 2);
}

at::Tensor Hopper(const AttentionInputs& in) {
  at::Tensor out = at::empty(in.query.sizes(), in.query.options());
  TORCH_CHECK(GetCudaOps().attention(in.query, in.key, in.value, out),
              "the Hopper kernel refuses these inputs");
  return out;
}

// Copies queries and keys first, because the rounding overwrites them.
at::Tensor EightBits(const AttentionInputs& in) {
  at::Tensor query = in.query.clone();
  at::Tensor key = in.key.clone();
  at::Tensor out = at::empty(in.query.sizes(), in.query.options());
  const RoundedHeads queries = RoundQueries(query);
  RoundedAttentionInto(queries, RoundKeys(key), RoundValues(in.value), out);
  return out;
}

at::Tensor WithOutliers(const at::Tensor& tensor) {
  at::Tensor result = tensor.clone();
  result.select(3, 5).mul_(8);
  result.select(3, 77).mul_(6);
  return result;
}

// The channels that have large values, far from 0, as in trained queries and keys.
at::Tensor WithShiftedChannels(const at::Tensor& tensor) {
  at::Tensor result = tensor.clone();
  for (const int64_t channel : {17, 90}) result.select(3, channel).mul_(4).add_(6);
  return result;
}

struct HardInputs {
  std::string name;
  std::function<AttentionInputs(const AttentionInputs& normal)> make;
};

// Returns inputs for five standard deviations of the logits, with and without shifted channels.
std::vector<HardInputs> InputsOfWidths() {
  std::vector<HardInputs> inputs;
  for (const double width : {0.25, 0.5, 1.0, 1.5, 2.0}) {
    inputs.push_back({absl::StrCat("logits of deviation ", width), [width](const auto& in) {
                        return AttentionInputs{in.query * width, in.key, in.value};
                      }});
  }
  for (const double width : {0.25, 0.5, 1.0, 1.5, 2.0}) {
    inputs.push_back(
        {absl::StrCat("two shifted channels, deviation ", width), [width](const auto& in) {
           // A channel (4a + 6)(4b + 6) adds (16a + 24)b to a query's logits: 16^2 + 24^2 to their
           // variance, before it is divided by 128.
           const double factor = width / std::sqrt((126 + 2 * (16 * 16 + 24 * 24)) / 128.0);
           return AttentionInputs{WithShiftedChannels(in.query) * factor,
                                  WithShiftedChannels(in.key), in.value};
         }});
  }
  return inputs;
}

std::vector<HardInputs> AllInputs() {
  std::vector<HardInputs> inputs = {
      {"normal", [](const AttentionInputs& in) { return in; }},
      {"two outlier channels",
       [](const AttentionInputs& in) {
         return AttentionInputs{WithOutliers(in.query), WithOutliers(in.key), in.value};
       }},
      {"logits nine times as wide",
       [](const AttentionInputs& in) {
         return AttentionInputs{in.query * 3, in.key * 3, in.value};
       }},
  };
  for (HardInputs& more : InputsOfWidths()) inputs.push_back(std::move(more));
  return inputs;
}

}  // namespace

std::vector<NamedAttention> KernelsFor(const AttentionInputs& inputs) {
  std::vector<NamedAttention> kernels = {{"the engine's", "error", &Engines}};
  const at::Device device = inputs.query.device();
  if (device.is_cpu() || inputs.query.size(3) != kTransformerHeadDim) return kernels;
  kernels.push_back({"cuDNN's", "cudnn_error", &Cudnn});
  const int capability = GetCudaOps().compute_capability(device.index());
  const AttentionKernel chosen = ChooseAttentionKernel({.device = device.type(),
                                                        .dtype = inputs.query.scalar_type(),
                                                        .queries = inputs.query.size(1),
                                                        .keys = inputs.key.size(1),
                                                        .head_dim = inputs.query.size(3),
                                                        .compute_capability = capability});
  if (RoundsAttention(inputs.query, inputs.key)) {
    kernels.push_back({"of 8 bits", "eight_bit_error", &EightBits});
  }
  constexpr int kHopperCapability = 90;
  if (capability == kHopperCapability && chosen != AttentionKernel::kHopper) {
    kernels.push_back({"our own for Hopper", "hopper_error", &Hopper});
  }
  return kernels;
}

double AttentionError(const at::Tensor& actual, const AttentionInputs& inputs, int64_t queries,
                      int64_t heads) {
  const int64_t rows = std::min(queries, inputs.query.size(1));
  double difference = 0;
  double norm = 0;
  const auto squared = [](const at::Tensor& t) {
    const double length = at::linalg_vector_norm(t).item().toDouble();
    return length * length;
  };
  for (int64_t h = 0; h < std::min(heads, inputs.query.size(2)); ++h) {
    const auto head = [h](const at::Tensor& t) {
      return t.select(2, h).select(0, 0).to(at::kFloat);
    };
    const auto last = [&](const at::Tensor& t) {
      return head(t.narrow(1, t.size(1) - rows, rows));
    };
    const at::Tensor scores = at::matmul(last(inputs.query), head(inputs.key).t()) /
                              std::sqrt(static_cast<double>(inputs.query.size(3)));
    const at::Tensor expected = at::matmul(at::softmax(scores, -1), head(inputs.value));
    difference += squared(last(actual) - expected);
    norm += squared(expected);
  }
  return std::sqrt(difference / norm);
}

absl::Status AddAttentionErrors(const std::vector<SelfAttentionSize>& sizes, Session& session) {
  const at::ScalarType dtype = session.device().is_cpu() ? at::kFloat : at::kBFloat16;
  for (const auto& [heads, tokens] : sizes) {
    const at::Tensor packed = at::randn({1, tokens, 3, heads, kTransformerHeadDim},
                                        at::TensorOptions(session.device()).dtype(dtype));
    const AttentionInputs normal = {packed.select(2, 0), packed.select(2, 1), packed.select(2, 2)};
    for (const HardInputs& inputs : AllInputs()) {
      const AttentionInputs in = inputs.make(normal);
      BenchRow row{.name = absl::StrCat("error, ", inputs.name, ", ", tokens, " tokens")};
      row.figures = {{"heads", heads}, {"tokens", tokens}};
      std::vector<double> errors;
      for (const NamedAttention& kernel : KernelsFor(in)) {
        errors.push_back(AttentionError(kernel.run(in), in, kErrorQueries, kErrorHeads));
        row.figures.push_back({kernel.error, errors.back()});
      }
      if (errors.size() > 1) row.figures.push_back({"beside_cudnn", errors[0] / errors[1]});
      if (absl::Status status = session.Add(std::move(row)); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace wan
