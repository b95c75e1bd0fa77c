#include "tests/engine/golden_vae.h"

#include <algorithm>
#include <utility>

#include "nlohmann/json.hpp"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/raw_tensors.h"

namespace wan {
namespace {

std::string VaeFolder() { return CheckpointDir() + "/ti2v-5b/diffusers/vae"; }

}  // namespace

const TensorInfo* InMemoryWeights::Find(std::string_view name) const {
  const auto found = std::find_if(infos_.begin(), infos_.end(),
                                  [&](const TensorInfo& info) { return info.name == name; });
  return found == infos_.end() ? nullptr : &*found;
}

absl::StatusOr<TensorBytes> InMemoryWeights::Read(const TensorInfo& tensor) const {
  const std::shared_ptr<const std::string>& bytes = bytes_.at(tensor.name);
  return TensorBytes{std::as_bytes(std::span(bytes->data(), bytes->size())), bytes};
}

void InMemoryWeights::Put(TensorInfo info, std::string bytes) {
  bytes_[info.name] = std::make_shared<const std::string>(std::move(bytes));
  infos_.push_back(std::move(info));
  std::sort(infos_.begin(), infos_.end(),
            [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
}

void InMemoryWeights::Remove(const std::string& name) {
  std::erase_if(infos_, [&](const TensorInfo& info) { return info.name == name; });
  bytes_.erase(name);
}

void InMemoryWeights::Reshape(const std::string& name, std::vector<int64_t> shape) {
  for (TensorInfo& info : infos_) {
    if (info.name == name) info.shape = std::move(shape);
  }
}

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
