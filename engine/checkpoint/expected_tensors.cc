#include "engine/checkpoint/expected_tensors.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

using Shape = std::vector<int64_t>;

// The name of a module in each of the two layouts.
struct Module {
  std::string upstream;
  std::string diffusers;

  Module Child(std::string_view upstream_child, std::string_view diffusers_child) const {
    return {absl::StrCat(upstream, upstream.empty() ? "" : ".", std::string(upstream_child)),
            absl::StrCat(diffusers, diffusers.empty() ? "" : ".", std::string(diffusers_child))};
  }
  // Returns the name of a child that both layouts call the same.
  Module Child(std::string_view child) const { return Child(child, child); }
};

class SpecList {
 public:
  void Tensor(const Module& tensor, Shape shape) {
    specs_.push_back({tensor.upstream, tensor.diffusers, std::move(shape)});
  }

  void Weight(const Module& module, Shape shape) {
    Tensor(module.Child("weight"), std::move(shape));
  }

  // Adds the weight and the bias of a linear layer or convolution. The bias has as many elements as
  // the weight's first dimension.
  void WeightAndBias(const Module& module, Shape shape) {
    const int64_t out = shape.front();
    Weight(module, std::move(shape));
    Tensor(module.Child("bias"), {out});
  }

  std::vector<TensorSpec> Take() { return std::move(specs_); }

 private:
  std::vector<TensorSpec> specs_;
};

void AddAttention(SpecList& list, const Module& attention, const TransformerConfig& config) {
  const Shape square = {config.dim, config.dim};
  list.WeightAndBias(attention.Child("q", "to_q"), square);
  list.WeightAndBias(attention.Child("k", "to_k"), square);
  list.WeightAndBias(attention.Child("v", "to_v"), square);
  list.WeightAndBias(attention.Child("o", "to_out.0"), square);
  if (config.qk_norm) {
    list.Weight(attention.Child("norm_q"), {config.dim});
    list.Weight(attention.Child("norm_k"), {config.dim});
  }
}

// Adds the parts of the video autoencoder that encoder and decoder have in common.
class VaeSpecs {
 public:
  explicit VaeSpecs(const VaeConfig& config)
      : config_(config), pixels_(3 * config.patch_size * config.patch_size) {}

  std::vector<TensorSpec> Build() {
    const Module root;
    AddEncoder(root.Child("encoder"));
    Convolution(root.Child("conv1", "quant_conv"), 2 * config_.z_dim, 2 * config_.z_dim, 1);
    Convolution(root.Child("conv2", "post_quant_conv"), config_.z_dim, config_.z_dim, 1);
    AddDecoder(root.Child("decoder"));
    return list_.Take();
  }

 private:
  bool IsNested() const { return config_.kind == VaeKind::kWan22; }
  size_t Stages() const { return config_.dim_mult.size(); }

  void AddEncoder(const Module& encoder) {
    int64_t width = config_.base_dim;
    Convolution(encoder.Child("conv1", "conv_in"), width, pixels_, 3);
    const int blocks = config_.num_res_blocks;
    for (size_t stage = 0; stage < Stages(); ++stage) {
      const int64_t out = config_.base_dim * config_.dim_mult[stage];
      for (int block = 0; block < blocks; ++block) {
        ResidualBlock(EncoderLayer(encoder, stage, block), width, out);
        width = out;
      }
      if (stage + 1 == Stages()) break;
      const Module resample = EncoderLayer(encoder, stage, blocks);
      Resample(resample, out, out);
      if (config_.temporal_downsample[stage]) TimeConvolution(resample, out, out);
    }
    Middle(encoder, width);
    Head(encoder, width, 2 * config_.z_dim);
  }

  void AddDecoder(const Module& decoder) {
    int64_t width = config_.decoder_base_dim * config_.dim_mult.back();
    Convolution(decoder.Child("conv1", "conv_in"), width, config_.z_dim, 3);
    Middle(decoder, width);
    const int blocks = config_.num_res_blocks + 1;
    for (size_t stage = 0; stage < Stages(); ++stage) {
      const int64_t out = config_.decoder_base_dim * config_.dim_mult[Stages() - 1 - stage];
      for (int block = 0; block < blocks; ++block) {
        ResidualBlock(DecoderLayer(decoder, stage, block), width, out);
        width = out;
      }
      if (stage + 1 == Stages()) break;
      const Module resample = DecoderLayer(decoder, stage, blocks);
      // The 2.1 VAE halves the channels when it doubles the resolution.
      width = IsNested() ? out : out / 2;
      Resample(resample, out, width);
      // The decoder's stages have the reverse order of the encoder's stages.
      if (config_.temporal_downsample[Stages() - 2 - stage]) {
        TimeConvolution(resample, out, 2 * out);
      }
    }
    Head(decoder, width, pixels_);
  }

  // Returns the name of layer `block` of a stage; the resampling layer follows the residual blocks.
  // The 2.1 VAE numbers the layers of all stages consecutively, without a number for the stage.
  Module EncoderLayer(const Module& encoder, size_t stage, int block) const {
    const int layers = config_.num_res_blocks + 1;
    if (!IsNested()) {
      const int flat = static_cast<int>(stage) * layers + block;
      return encoder.Child(absl::StrCat("downsamples.", flat), absl::StrCat("down_blocks.", flat));
    }
    return encoder.Child(
        absl::StrCat("downsamples.", stage, ".downsamples.", block),
        absl::StrCat("down_blocks.", stage, ".",
                     block + 1 < layers ? absl::StrCat("resnets.", block) : "downsampler"));
  }

  Module DecoderLayer(const Module& decoder, size_t stage, int block) const {
    const int layers = config_.num_res_blocks + 2;
    const std::string upstream =
        IsNested() ? absl::StrCat("upsamples.", stage, ".upsamples.", block)
                   : absl::StrCat("upsamples.", static_cast<int>(stage) * layers + block);
    const std::string resample = IsNested() ? "upsampler" : "upsamplers.0";
    return decoder.Child(
        upstream, absl::StrCat("up_blocks.", stage, ".",
                               block + 1 < layers ? absl::StrCat("resnets.", block) : resample));
  }

  void Convolution(const Module& module, int64_t out, int64_t in, int64_t kernel) {
    list_.WeightAndBias(module, {out, in, kernel, kernel, kernel});
  }

  void Norm(const Module& module, int64_t width) {
    list_.Tensor(module.Child("gamma"), {width, 1, 1, 1});
  }

  void ResidualBlock(const Module& block, int64_t in, int64_t out) {
    Norm(block.Child("residual.0", "norm1"), in);
    Convolution(block.Child("residual.2", "conv1"), out, in, 3);
    Norm(block.Child("residual.3", "norm2"), out);
    Convolution(block.Child("residual.6", "conv2"), out, out, 3);
    if (in != out) Convolution(block.Child("shortcut", "conv_shortcut"), out, in, 1);
  }

  void Middle(const Module& side, int64_t width) {
    ResidualBlock(side.Child("middle.0", "mid_block.resnets.0"), width, width);
    const Module attention = side.Child("middle.1", "mid_block.attentions.0");
    list_.Tensor(attention.Child("norm.gamma"), {width, 1, 1});
    list_.WeightAndBias(attention.Child("to_qkv"), {3 * width, width, 1, 1});
    list_.WeightAndBias(attention.Child("proj"), {width, width, 1, 1});
    ResidualBlock(side.Child("middle.2", "mid_block.resnets.1"), width, width);
  }

  void Resample(const Module& layer, int64_t in, int64_t out) {
    list_.WeightAndBias(layer.Child("resample.1"), {out, in, 3, 3});
  }

  void TimeConvolution(const Module& layer, int64_t in, int64_t out) {
    list_.WeightAndBias(layer.Child("time_conv"), {out, in, 3, 1, 1});
  }

  void Head(const Module& side, int64_t width, int64_t out) {
    Norm(side.Child("head.0", "norm_out"), width);
    Convolution(side.Child("head.2", "conv_out"), out, width, 3);
  }

  const VaeConfig& config_;
  const int64_t pixels_;  // channels of a patch of RGB pixels, folded into one pixel
  SpecList list_;
};

}  // namespace

std::vector<TensorSpec> ExpectedTensors(const TransformerConfig& config) {
  SpecList list;
  const Module root;
  const int64_t dim = config.dim;
  const auto [frames, rows, columns] = config.patch_size;
  list.WeightAndBias(root.Child("patch_embedding"),
                     {dim, config.in_channels, frames, rows, columns});
  const Module condition{"", "condition_embedder"};
  const Module text = condition.Child("text_embedding", "text_embedder");
  list.WeightAndBias(text.Child("0", "linear_1"), {dim, config.text_dim});
  list.WeightAndBias(text.Child("2", "linear_2"), {dim, dim});
  const Module time = condition.Child("time_embedding", "time_embedder");
  list.WeightAndBias(time.Child("0", "linear_1"), {dim, config.freq_dim});
  list.WeightAndBias(time.Child("2", "linear_2"), {dim, dim});
  list.WeightAndBias(condition.Child("time_projection.1", "time_proj"), {6 * dim, dim});
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const Module block = root.Child(absl::StrCat("blocks.", i));
    list.Tensor(block.Child("modulation", "scale_shift_table"), {1, 6, dim});
    AddAttention(list, block.Child("self_attn", "attn1"), config);
    if (config.cross_attn_norm) list.WeightAndBias(block.Child("norm3", "norm2"), {dim});
    AddAttention(list, block.Child("cross_attn", "attn2"), config);
    list.WeightAndBias(block.Child("ffn.0", "ffn.net.0.proj"), {config.ffn_dim, dim});
    list.WeightAndBias(block.Child("ffn.2", "ffn.net.2"), {dim, config.ffn_dim});
  }
  list.Tensor(root.Child("head.modulation", "scale_shift_table"), {1, 2, dim});
  list.WeightAndBias(root.Child("head.head", "proj_out"),
                     {frames * rows * columns * config.out_channels, dim});
  return list.Take();
}

std::vector<TensorSpec> ExpectedTensors(const TextEncoderConfig& config) {
  SpecList list;
  const Module root;
  const int64_t dim = config.dim;
  const int64_t attention_dim = config.num_heads * config.head_dim;
  list.Weight(root.Child("token_embedding", "shared"), {config.vocab_size, dim});
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const Module block =
        root.Child(absl::StrCat("blocks.", i), absl::StrCat("encoder.block.", i, ".layer"));
    list.Weight(block.Child("norm1", "0.layer_norm"), {dim});
    const Module attention = block.Child("attn", "0.SelfAttention");
    list.Weight(attention.Child("q"), {attention_dim, dim});
    list.Weight(attention.Child("k"), {attention_dim, dim});
    list.Weight(attention.Child("v"), {attention_dim, dim});
    list.Weight(attention.Child("o"), {dim, attention_dim});
    list.Weight(block.Child("pos_embedding.embedding", "0.SelfAttention.relative_attention_bias"),
                {config.num_buckets, config.num_heads});
    list.Weight(block.Child("norm2", "1.layer_norm"), {dim});
    list.Weight(block.Child("ffn.gate.0", "1.DenseReluDense.wi_0"), {config.ffn_dim, dim});
    list.Weight(block.Child("ffn.fc1", "1.DenseReluDense.wi_1"), {config.ffn_dim, dim});
    list.Weight(block.Child("ffn.fc2", "1.DenseReluDense.wo"), {dim, config.ffn_dim});
  }
  list.Weight(root.Child("norm", "encoder.final_layer_norm"), {dim});
  return list.Take();
}

std::vector<TensorSpec> ExpectedTensors(const VaeConfig& config) {
  return VaeSpecs(config).Build();
}

std::vector<TensorSpec> ExpectedTensors(const TinyDecoderConfig& config) {
  SpecList list;
  // The number of a module counts those without weights as well: clamping first, an activation, and
  // in each stage its upsampling.
  int number = 1;
  const auto module = [&] { return Module{"tiny_decoder", "decoder"}.Child(absl::StrCat(number)); };
  list.WeightAndBias(module(), {config.widths[0], config.z_dim, 3, 3});
  number += 2;
  for (size_t stage = 0; stage + 1 < kTinyStages; ++stage) {
    const int64_t width = config.widths[stage];
    for (int block = 0; block < kTinyBlocks; ++block, ++number) {
      const Module convolutions = module().Child("conv");
      list.WeightAndBias(convolutions.Child("0"), {width, 2 * width, 3, 3});
      list.WeightAndBias(convolutions.Child("2"), {width, width, 3, 3});
      list.WeightAndBias(convolutions.Child("4"), {width, width, 3, 3});
    }
    ++number;
    const int64_t growth = TinyDecoderConfig::Growth(stage);
    list.Weight(module().Child("conv"), {growth * width, width, 1, 1});
    ++number;
    list.Weight(module(), {config.widths[stage + 1], width, 3, 3});
    ++number;
  }
  ++number;
  list.WeightAndBias(module(),
                     {3 * config.patch_size * config.patch_size, config.widths.back(), 3, 3});
  return list.Take();
}

}  // namespace wan
