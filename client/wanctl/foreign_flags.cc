#include "client/wanctl/foreign_flags.h"

#include <algorithm>

namespace wan::client {
namespace {

constexpr std::string_view kUpstream = "generate.py's ";
constexpr std::string_view kDiffusers = "diffusers' ";

struct ForeignFlag {
  std::string_view name;  // the flag's name, with its words joined by '_'
  std::string_view origin;
  std::string_view here;  // continues the sentence "generate.py's --NAME "
};

constexpr ForeignFlag kFlags[] = {
    {"frame_num", kUpstream, "is --frames here"},
    {"sample_steps", kUpstream, "is --steps here"},
    {"sample_shift", kUpstream, "is --shift here"},
    {"sample_solver", kUpstream, "is --solver here"},
    {"sample_guide_scale", kUpstream,
     "is --guidance here; its pair is written LOW,HIGH, as upstream's configurations have it"},
    {"base_seed", kUpstream, "is --seed here"},
    {"save_file", kUpstream, "is --output here"},
    {"task", kUpstream,
     "is --model here: the name under which the server has loaded the checkpoint ('wanctl "
     "models')"},
    {"ckpt_dir", kUpstream, "belongs to the server: wanserve --model NAME=FOLDER"},
    {"offload_model", kUpstream,
     "belongs to the server, which plans where weights are so that they fit; wanserve "
     "--residency-policy sets it by hand"},
    {"t5_cpu", kUpstream,
     "belongs to the server, which keeps the text encoder where it fits; wanserve "
     "--residency-policy text_encoder=cpu sets it by hand"},
    {"ulysses_size", kUpstream,
     "belongs to the server: wanserve --device cuda:0,1 is a group of 2"},
    {"dit_fsdp", kUpstream,
     "belongs to the server: the GPUs of a group (wanserve --device cuda:0,1) divide a video"},
    {"t5_fsdp", kUpstream,
     "belongs to the server: the GPUs of a group (wanserve --device cuda:0,1) divide a video"},
    {"convert_model_dtype", kUpstream,
     "belongs to the server: weights are bf16 on a GPU unless wanserve --dtype says otherwise"},
    {"use_prompt_extend", kUpstream,
     "has no counterpart: the server takes the prompt as it is; extend it before"},
    {"prompt_extend_method", kUpstream,
     "has no counterpart: the server takes the prompt as it is; extend it before"},
    {"prompt_extend_model", kUpstream,
     "has no counterpart: the server takes the prompt as it is; extend it before"},
    {"prompt_extend_target_lang", kUpstream,
     "has no counterpart: the server takes the prompt as it is; extend it before"},
    {"compile", "a script's ",
     "has no counterpart: the kernels are compiled when the server is built"},
    {"compile_mode", "a script's ",
     "has no counterpart: the kernels are compiled when the server is built"},
    {"use_batched_cfg", "a script's ",
     "belongs to the server: wanserve --guidance-batching batched"},
    {"tf32", "a script's ",
     "belongs to the video autoencoder alone here: --vae-precision tf32; the rest computes in "
     "bf16"},
    {"num_runs", "a script's ", "belongs to 'wanctl bench', which has --num-runs"},
    {"num_inference_steps", kDiffusers, "is --steps here"},
    {"num_frames", kDiffusers, "is --frames here"},
    {"guidance_scale", kDiffusers, "is --guidance here"},
    {"guidance_scale_2", kDiffusers,
     "is the first number of --guidance LOW,HIGH here; guidance_scale is the second"},
    {"flow_shift", kDiffusers, "is --shift here"},
    {"width", kDiffusers, "is --size WxH here"},
    {"height", kDiffusers, "is --size WxH here"},
    {"generator", kDiffusers, "is --seed here"},
};

}  // namespace

std::string HintForForeignFlag(std::string_view flag) {
  if (!flag.starts_with("--")) return "";
  std::string name(flag.substr(2));
  std::replace(name.begin(), name.end(), '-', '_');
  const auto* const found =
      std::find_if(std::begin(kFlags), std::end(kFlags),
                   [&](const ForeignFlag& known) { return known.name == name; });
  if (found == std::end(kFlags)) return "";
  return std::string(found->origin) + "--" + std::string(found->name) + " " +
         std::string(found->here);
}

std::vector<std::string_view> ForeignFlags() {
  std::vector<std::string_view> names;
  for (const ForeignFlag& known : kFlags) names.push_back(known.name);
  return names;
}

}  // namespace wan::client
