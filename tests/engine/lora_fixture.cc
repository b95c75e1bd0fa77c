#include "tests/engine/lora_fixture.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "engine/checkpoint/expected_tensors.h"
#include "engine/formats/safetensors_writer.h"
#include "engine/weights/weight_loader.h"
#include "tests/engine/random_tensor.h"

namespace wan {
namespace {

struct Spelling {
  const char* name;
  const char* prefix;
  bool diffusers_modules;
  bool underscores;
  const char* down;
  const char* up;
  bool alpha_tensors;
};

Spelling SpellingOf(LoraStyle style) {
  const char* const a = ".lora_A.weight";
  const char* const b = ".lora_B.weight";
  const char* const default_a = ".lora_A.default.weight";
  const char* const default_b = ".lora_B.default.weight";
  const char* const down = ".lora_down.weight";
  const char* const up = ".lora_up.weight";
  switch (style) {
    case LoraStyle::kDiffusers:
      return {"Diffusers", "transformer.", true, false, a, b, false};
    case LoraStyle::kDiffusersDownUp:
      return {"DiffusersDownUp",   "transformer.",    true, false,
              ".lora.down.weight", ".lora.up.weight", true};
    case LoraStyle::kPeft:
      return {"Peft", "base_model.model.", true, false, a, b, false};
    case LoraStyle::kPeftDefault:
      return {"PeftDefault", "base_model.model.", true, false, default_a, default_b, false};
    case LoraStyle::kComfy:
      return {"Comfy", "diffusion_model.", false, false, down, up, true};
    case LoraStyle::kBare:
      return {"Bare", "", false, false, default_a, default_b, true};
    case LoraStyle::kKohya:
      return {"Kohya", "lora_unet_", false, true, down, up, true};
    case LoraStyle::kKohyaTwoScores:
      return {"KohyaTwoScores", "lora_unet__", false, true, down, up, true};
    case LoraStyle::kKohyaOfDiffusers:
      return {"KohyaOfDiffusers", "lora_unet_", true, true, down, up, true};
  }
  throw std::logic_error("no such style");
}

bool IsPeft(LoraStyle style) {
  return style == LoraStyle::kPeft || style == LoraStyle::kPeftDefault;
}

// Canonical module -> diffusers' name of it.
std::string DiffusersModule(const std::string& module) {
  static const std::pair<const char*, const char*> kNames[] = {
      {"self_attn.q", "attn1.to_q"},
      {"self_attn.k", "attn1.to_k"},
      {"self_attn.v", "attn1.to_v"},
      {"self_attn.o", "attn1.to_out.0"},
      {"cross_attn.q", "attn2.to_q"},
      {"cross_attn.k", "attn2.to_k"},
      {"cross_attn.v", "attn2.to_v"},
      {"cross_attn.o", "attn2.to_out.0"},
      {"ffn.0", "ffn.net.0.proj"},
      {"ffn.2", "ffn.net.2"},
      {"text_embedding.0", "condition_embedder.text_embedder.linear_1"},
      {"text_embedding.2", "condition_embedder.text_embedder.linear_2"},
      {"time_embedding.0", "condition_embedder.time_embedder.linear_1"},
      {"time_embedding.2", "condition_embedder.time_embedder.linear_2"},
      {"time_projection.1", "condition_embedder.time_proj"},
      {"head.head", "proj_out"},
      {"patch_embedding", "patch_embedding"}};
  for (const auto& [upstream, diffusers] : kNames) {
    if (module.ends_with(upstream)) {
      return module.substr(0, module.size() - std::string(upstream).size()) + diffusers;
    }
  }
  throw std::logic_error("no diffusers name of " + module);
}

std::string DTypeText(at::ScalarType dtype) {
  if (dtype == at::kFloat) return "F32";
  return dtype == at::kBFloat16 ? "BF16" : "F16";
}

// Tensors on their way to a file.
class Contents {
 public:
  void Add(const std::string& name, const at::Tensor& value) {
    const at::Tensor& kept = values_.emplace_back(value.contiguous());
    list_.push_back(
        {name, DTypeText(kept.scalar_type()), kept.sizes().vec(),
         std::span(static_cast<const std::byte*>(kept.const_data_ptr()), kept.nbytes())});
  }
  void Write(const std::string& path, const std::map<std::string, std::string>& metadata) {
    const absl::Status status = WriteSafetensors(path, list_, metadata);
    if (!status.ok()) throw std::runtime_error(std::string(status.message()));
  }

 private:
  std::vector<at::Tensor> values_;
  std::vector<SafetensorsTensor> list_;
};

}  // namespace

std::string StyleName(LoraStyle style) { return SpellingOf(style).name; }

TestLora TestLora::Random(const TransformerConfig& config, int64_t rank, uint64_t seed,
                          double deviation) {
  TestLora lora;
  lora.alpha = 2.0 * static_cast<double>(rank);
  // The sum of `rank` products, each of the factors' deviations, times alpha / rank.
  const double each = std::sqrt(deviation / 2 / std::sqrt(static_cast<double>(rank)));
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    const std::string ending = ".weight";
    if (!spec.name.ends_with(ending) || spec.shape.size() < 2) continue;
    int64_t columns = 1;
    for (size_t i = 1; i < spec.shape.size(); ++i) columns *= spec.shape[i];
    const std::string module = spec.name.substr(0, spec.name.size() - ending.size());
    lora.pairs[module] = {RandomTensor({rank, columns}, ++seed, at::kFloat, 0, each),
                          RandomTensor({spec.shape[0], rank}, ++seed, at::kFloat, 0, each)};
  }
  return lora;
}

std::string TestLora::Write(const std::string& folder, LoraStyle style,
                            at::ScalarType dtype) const {
  const Spelling spelling = SpellingOf(style);
  Contents contents;
  for (const auto& [module, pair] : pairs) {
    std::string name = spelling.diffusers_modules ? DiffusersModule(module) : module;
    if (spelling.underscores) {
      for (char& c : name) c = c == '.' ? '_' : c;
    }
    name = spelling.prefix + name;
    contents.Add(name + spelling.down, pair.down.to(dtype));
    contents.Add(name + spelling.up, pair.up.to(dtype));
    if (spelling.alpha_tensors) contents.Add(name + ".alpha", at::full({}, alpha, at::kFloat));
  }
  if (style == LoraStyle::kComfy) {
    for (const auto& [tensor, value] : additions) {
      std::string name = spelling.prefix + tensor;
      const auto ends = [&](const std::string& ending, const std::string& other) {
        if (!name.ends_with(ending)) return false;
        name = name.substr(0, name.size() - ending.size()) + other;
        return true;
      };
      if (!ends(".bias", ".diff_b") && !ends(".weight", ".diff") && !ends(".modulation", ".diff_m"))
        throw std::logic_error("an addition to " + tensor);
      contents.Add(name, value.to(dtype));
    }
  }
  std::map<std::string, std::string> metadata{{"format", "pt"}};
  if (style == LoraStyle::kDiffusers) {
    metadata["lora_adapter_metadata"] = nlohmann::json{
        {"transformer.lora_alpha", alpha},
        {"transformer.use_rslora",
         rank_stabilised}}.dump();
  }
  std::string path = folder + "/" + StyleName(style) + ".safetensors";
  if (IsPeft(style)) {
    const std::string own = folder + "/" + StyleName(style);
    std::filesystem::create_directories(own);
    std::ofstream(own + "/adapter_config.json") << nlohmann::json{
        {"peft_type", "LORA"}, {"lora_alpha", alpha}, {"use_rslora", rank_stabilised}};
    contents.Write(own + "/adapter_model.safetensors", metadata);
    return own;
  }
  contents.Write(path, metadata);
  return path;
}

void TestLora::MergeInto(InMemoryWeights& weights, double scale) const {
  for (const auto& [module, pair] : pairs) {
    const std::string name = module + ".weight";
    const at::Tensor base = GetTensor(weights, name);
    const double rank = static_cast<double>(pair.down.size(0));
    const double factor = scale * alpha / (rank_stabilised ? std::sqrt(rank) : rank);
    const at::Tensor addition = at::matmul(pair.up.to(at::kDouble), pair.down.to(at::kDouble));
    PutTensor(weights, name, base.to(at::kDouble) + addition.view(base.sizes()) * factor);
  }
  for (const auto& [name, value] : additions) {
    const at::Tensor base = GetTensor(weights, name).to(at::kDouble);
    PutTensor(weights, name, base + value.to(at::kDouble).view(base.sizes()) * scale);
  }
}

void PutTensor(InMemoryWeights& weights, const std::string& name, const at::Tensor& value) {
  TensorInfo info = *weights.Find(name);
  const at::Tensor rounded = value.to(at::kFloat).contiguous();
  info.dtype = DType::kFloat32;
  info.bytes = rounded.nbytes();
  weights.Remove(name);
  weights.Put(info,
              std::string(static_cast<const char*>(rounded.const_data_ptr()), rounded.nbytes()));
}

at::Tensor GetTensor(const WeightSource& weights, const std::string& name) {
  const TensorInfo* const info = weights.Find(name);
  if (info == nullptr) throw std::runtime_error("no tensor " + name);
  const TensorBytes bytes = weights.Read(*info).value();
  return at::from_blob(const_cast<std::byte*>(bytes.bytes.data()), info->shape,
                       at::TensorOptions().dtype(ToScalarType(info->dtype)))
      .to(at::kFloat)
      .clone();
}

}  // namespace wan
