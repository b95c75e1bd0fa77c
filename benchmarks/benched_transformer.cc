#include "benchmarks/benched_transformer.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/costs/wan/transformer_cost.h"
#include "engine/models/wan/transformer.h"

namespace wan {

std::vector<at::Tensor> BenchedTransformer::RandomTexts(int64_t texts, int64_t rows) const {
  const auto options = at::TensorOptions(latents.device()).dtype(at::kFloat);
  std::vector<at::Tensor> contexts;
  for (int64_t i = 0; i < texts; ++i) {
    contexts.push_back(at::randn({rows, transformer->config().text_dim}, options));
  }
  return contexts;
}

absl::StatusOr<std::shared_ptr<const TextConditioning>> BenchedTransformer::PrepareTexts(
    int64_t texts, int64_t rows) const {
  return transformer->PrepareText(RandomTexts(texts, rows));
}

Work BenchedTransformer::ForwardWork(const std::string& precision) const {
  const TransformerConfig& config = transformer->config();
  const int64_t batch = latents.size(0);
  Work work{.precision = precision};
  work.attention_flop =
      AttentionFlops(config, tokens, tokens) * static_cast<double>(batch * config.num_layers);
  work.product_flop = TransformerForwardFlops(config, tokens, batch) - work.attention_flop;
  return work;
}

absl::StatusOr<BenchedTransformer> LoadToBench(Session& session, const TransformerToBench& wanted) {
  const auto checkpoint = Checkpoint::Open(wanted.model);
  if (!checkpoint.ok()) return checkpoint.status();
  const at::Device device = session.device();
  const auto start = std::chrono::steady_clock::now();
  BenchedTransformer benched;
  benched.device = device;
  benched.weights = std::make_shared<ComponentWeights>(MakeWeightMover(device), wanted.home);
  auto transformer =
      LoadWanTransformer((*checkpoint)->transformer(), (*checkpoint)->transformer_config(),
                         {.device = device,
                          .dtype = wanted.dtype == "fp32" ? at::kFloat : at::kBFloat16,
                          .weights = benched.weights});
  if (!transformer.ok()) return transformer.status();
  benched.transformer = *std::move(transformer);
  Synchronize(device);
  session.Note(absl::StrFormat("%s, %s: loaded in %.2f s, weights %.2f GiB", wanted.model,
                               wanted.dtype, SecondsSince(start),
                               static_cast<double>(benched.transformer->WeightBytes()) / kGiB));

  absl::Status shaped = SetShape((*checkpoint)->vae_config(), wanted, benched);
  if (!shaped.ok()) return shaped;
  return benched;
}

absl::Status SetShape(const VaeConfig& vae, const TransformerToBench& wanted,
                      BenchedTransformer& benched) {
  const TransformerConfig& config = benched.transformer->config();
  const auto [p, q, r] = config.patch_size;
  absl::Status fits =
      CheckShape(wanted.shape, vae.stride_spatial * std::max(q, r), vae.stride_temporal);
  if (!fits.ok()) return fits;
  const at::Device device = benched.device;
  benched.latents = at::randn(
      {wanted.batch, config.in_channels, (wanted.shape.frames - 1) / vae.stride_temporal + 1,
       wanted.shape.height / vae.stride_spatial, wanted.shape.width / vae.stride_spatial},
      at::TensorOptions(device).dtype(at::kFloat));
  const int64_t tokens_per_frame = benched.latents.size(3) / q * (benched.latents.size(4) / r);
  benched.tokens = benched.latents.size(2) / p * tokens_per_frame;
  benched.timestep = at::full({wanted.batch, benched.tokens}, 900.0, at::kFloat);
  if (wanted.first_frame) benched.timestep.narrow(1, 0, tokens_per_frame).zero_();
  return absl::OkStatus();
}

}  // namespace wan
