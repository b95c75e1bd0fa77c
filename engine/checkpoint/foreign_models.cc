#include "engine/checkpoint/foreign_models.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

constexpr std::string_view kTakeWan = "take the file of TI2V-5B, T2V-A14B or I2V-A14B";
constexpr std::string_view kTakeUmt5 = "take the UMT5-XXL encoder of Wan";
constexpr std::string_view kTakeVae = "take the VAE of Wan 2.1 or 2.2";
constexpr std::string_view kWholeModel =
    "has several parts of a model in one file, as all-in-one checkpoints of ComfyUI";
constexpr std::string_view kTakeParts =
    "take the files of the single parts (transformer, text encoder, VAE)";
constexpr std::string_view kWan21Image =
    "is an image-to-video model of Wan2.1, whose image embeddings this server does not compute";
constexpr std::string_view kTakeImageModel =
    "use I2V-A14B or TI2V-5B of Wan2.2 for videos from images";

// A text that occurs in tensor names of one kind of unsupported file, and in no supported model.
struct Mark {
  std::string_view text;
  std::string_view what;
  std::string_view help;
};

// The first mark that is found decides. So if the tensors of one model include the tensors of
// another, the larger model stands first.
constexpr Mark kMarks[] = {
    {".lora_down.", "is a LoRA, not a whole model", "register it with --lora"},
    {".lora_A.", "is a LoRA, not a whole model", "register it with --lora"},
    {".lora_up.", "is a LoRA, not a whole model", "register it with --lora"},
    {".dora_scale", "is a DoRA, not a whole model", "register it with --lora"},
    {".hada_w1_a", "is a LoHa, not a whole model", "register it with --lora"},
    {".lokr_w1", "is a LoKr, not a whole model", "register it with --lora"},
    {"first_stage_model.", kWholeModel, kTakeParts},
    {"text_encoders.", kWholeModel, kTakeParts},
    {"controlnet_blocks.", "is a ControlNet, which takes control videos", kTakeWan},
    {"vace_blocks.", "is a VACE model of Wan, which takes control videos", kTakeWan},
    {"vace_patch_embedding.", "is a VACE model of Wan, which takes control videos", kTakeWan},
    {"face_adapter.", "is a Wan-Animate model, which takes a video of a person", kTakeWan},
    {"pose_patch_embedding.", "is a Wan-Animate model, which takes a video of a person", kTakeWan},
    {"audio_injector.", "is a Wan-S2V model, which takes speech", kTakeWan},
    {"casual_audio_encoder.", "is a Wan-S2V model, which takes speech", kTakeWan},
    {"control_adapter.", "is a Wan-Fun model with camera control", kTakeWan},
    {"ref_conv.", "is a Wan-Fun model with control videos", kTakeWan},
    {"img_emb.", kWan21Image, kTakeImageModel},
    {"condition_embedder.image_embedder.", kWan21Image, kTakeImageModel},
    {".to_gate_compress.",
     "was trained for FastVideo's sparse attention (VSA), which this server does not compute",
     "use a checkpoint with full attention, for example FastWan2.2-TI2V-5B-FullAttn-Diffusers"},
    {".attn_op.local_attn.",
     "was trained for TurboDiffusion's sparse-linear attention (SLA), which this server does not "
     "compute",
     "use a checkpoint with full attention, for example rCM's"},
    {"txt_in.individual_token_refiner.", "is a model of HunyuanVideo", kTakeWan},
    {"context_embedder.token_refiner.", "is a model of HunyuanVideo", kTakeWan},
    {"double_blocks.", "is a model of FLUX or HunyuanVideo", kTakeWan},
    {"patchify_proj.", "is a model of LTX-Video", kTakeWan},
    {"adaln_single.", "is a model of LTX-Video or PixArt", kTakeWan},
    {"joint_blocks.", "is a model of Stable Diffusion 3", kTakeWan},
    {".attn.add_q_proj.", "is a model of Qwen-Image or FLUX", kTakeWan},
    {"input_blocks.", "is a model of Stable Diffusion", kTakeWan},
    {"down_blocks.0.attentions.", "is a model of Stable Diffusion", kTakeWan},
    {"adaln_modulation_self_attn.", "is a model of Cosmos", kTakeWan},
    {"text_model.encoder.", "is a CLIP text encoder", kTakeUmt5},
    {"vision_model.", "is a CLIP image encoder, which Wan 2.2 does not use", "leave it out"},
    {"visual.transformer.", "is a CLIP image encoder, which Wan 2.2 does not use", "leave it out"},
    {"model.layers.0.", "is a language model", kTakeUmt5},
    {"blk.0.attn_output.", "is a language model", kTakeUmt5},
    {"decoder.up.0.block.", "is a VAE of Stable Diffusion or FLUX", kTakeVae},
    {"decoder.1.conv.3.", "is the variant 'super' of a tiny decoder (TAEHV), which is not read",
     "use the ordinary one, for example taew2_2.safetensors"},
    {"decoder.3.conv.0.", "is a tiny autoencoder (TAE), which is no full VAE", kTakeVae},
};

bool Contains(const std::set<std::string, std::less<>>& names, std::string_view text) {
  return std::any_of(names.begin(), names.end(), [text](const std::string& name) {
    return name.find(text) != std::string::npos;
  });
}

// UMT5 has a table of relative positions in every block, T5 only in the first.
bool IsT5(const std::set<std::string, std::less<>>& names) {
  constexpr std::string_view kTables[][2] = {
      {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.",
       "encoder.block.1.layer.0.SelfAttention.relative_attention_bias."},
      {"enc.blk.0.attn_rel_b.", "enc.blk.1.attn_rel_b."}};
  constexpr std::string_view kSecondBlocks[] = {"encoder.block.1.", "enc.blk.1."};
  for (size_t i = 0; i < std::size(kTables); ++i) {
    if (Contains(names, kTables[i][0]) && Contains(names, kSecondBlocks[i]) &&
        !Contains(names, kTables[i][1])) {
      return true;
    }
  }
  return false;
}

std::string Sentence(std::string_view what, std::string_view help) {
  return absl::StrCat(std::string(what), "; ", std::string(help));
}

}  // namespace

std::string NameForeignModel(const std::set<std::string, std::less<>>& names) {
  for (const Mark& mark : kMarks) {
    if (Contains(names, mark.text)) return Sentence(mark.what, mark.help);
  }
  return IsT5(names) ? Sentence("is a T5 text encoder, not UMT5", kTakeUmt5) : "";
}

}  // namespace wan
