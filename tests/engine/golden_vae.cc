#include "tests/engine/golden_vae.h"

#include <utility>

#include "nlohmann/json.hpp"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/raw_tensors.h"

namespace wan {
namespace {

std::string VaeFolder() { return CheckpointDir() + "/ti2v-5b/diffusers/vae"; }

}  // namespace

VaeConfig GoldenVae22Config() {
  const nlohmann::json json = nlohmann::json::parse(ReadFileBytes(VaeFolder() + "/config.json"));
  VaeConfig config;
  config.kind = "2.2";
  config.z_dim = json["z_dim"];
  config.base_dim = json["base_dim"];
  config.decoder_base_dim = json["decoder_base_dim"];
  config.dim_mult = json["dim_mult"].get<std::vector<int64_t>>();
  config.num_res_blocks = json["num_res_blocks"];
  config.temporal_downsample = json["temperal_downsample"].get<std::vector<bool>>();
  config.patch_size = json["patch_size"];
  config.stride_spatial = json["scale_factor_spatial"];
  config.stride_temporal = json["scale_factor_temporal"];
  config.latents_mean = json["latents_mean"].get<std::vector<double>>();
  config.latents_std = json["latents_std"].get<std::vector<double>>();
  return config;
}

InMemoryWeights GoldenVae22Weights() {
  const std::string file = VaeFolder() + "/diffusion_pytorch_model.safetensors";
  const nlohmann::json names =
      nlohmann::json::parse(ReadFileBytes(GoldenDir() + "/key_map.json"))["vae2.2"];
  std::map<std::string, RawTensor> tensors = ReadRawTensors(file);
  InMemoryWeights weights;
  for (const auto& [upstream, diffusers] : names.items()) {
    RawTensor& raw = tensors.at(diffusers.get<std::string>());
    TensorInfo info{.name = upstream,
                    .dtype = DTypeFromName(raw.dtype).value(),
                    .shape = raw.shape,
                    .bytes = raw.bytes.size(),
                    .file = file};
    weights.Put(std::move(info), std::move(raw.bytes));
  }
  return weights;
}

}  // namespace wan
