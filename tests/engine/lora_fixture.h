// LoRAs for tests: random ones for any transformer, in files of every key style, and the weights
// that they should give, merged by other means than the engine's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_source.h"
#include "tests/engine/in_memory_weights.h"

namespace wan {

enum class LoraStyle {
  kDiffusers,         // transformer. ... .lora_A.weight, alpha in the metadata
  kDiffusersDownUp,   // transformer. ... .lora.down.weight, alpha tensors
  kPeft,              // base_model.model. ... .lora_A.weight in a folder with adapter_config.json
  kPeftDefault,       // the same with .lora_A.default.weight
  kComfy,             // diffusion_model. ... .lora_down.weight, alpha tensors
  kBare,              // blocks.0. ... .lora_A.default.weight, alpha tensors
  kKohya,             // lora_unet_blocks_0_... .lora_down.weight, alpha tensors
  kKohyaTwoScores,    // lora_unet__blocks_0_...
  kKohyaOfDiffusers,  // lora_unet_blocks_0_attn1_to_q...
};

// What a name of a test may say.
std::string StyleName(LoraStyle style);
inline constexpr LoraStyle kLoraStyles[] = {
    LoraStyle::kDiffusers,   LoraStyle::kDiffusersDownUp, LoraStyle::kPeft,
    LoraStyle::kPeftDefault, LoraStyle::kComfy,           LoraStyle::kBare,
    LoraStyle::kKohya,       LoraStyle::kKohyaTwoScores,  LoraStyle::kKohyaOfDiffusers};

struct TestLora {
  struct Pair {
    at::Tensor down;  // [rank, columns]
    at::Tensor up;    // [rows, rank]
  };

  // Of every module's weight; `deviation` of an addition's elements is about that.
  static TestLora Random(const TransformerConfig& config, int64_t rank, uint64_t seed,
                         double deviation = 0.05);

  std::map<std::string, Pair> pairs;            // by canonical module
  std::map<std::string, at::Tensor> additions;  // by canonical tensor, of its shape
  double alpha = 0;
  bool rank_stabilised = false;

  // Gives what to open: the file, or PEFT's folder. `additions` are written by kComfy alone.
  std::string Write(const std::string& folder, LoraStyle style,
                    at::ScalarType dtype = at::kFloat) const;

  // The base's weights + scale * alpha / rank * up down, all in float64, rounded to fp32 once.
  void MergeInto(InMemoryWeights& weights, double scale) const;
};

// Replaces a tensor of `weights` by one of its shape.
void PutTensor(InMemoryWeights& weights, const std::string& name, const at::Tensor& value);
at::Tensor GetTensor(const WeightSource& weights, const std::string& name);

}  // namespace wan
