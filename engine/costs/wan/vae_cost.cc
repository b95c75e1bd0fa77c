#include "engine/costs/wan/vae_cost.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "engine/costs/memory_walk.h"
#include "engine/costs/wan/tiny_decoder_cost.h"

namespace wan {
namespace {

constexpr int64_t kColors = 3;
constexpr int64_t kFp32 = 4;
constexpr size_t kEncoder = 1;  // indexes of the weight groups
constexpr size_t kDecoder = 2;
constexpr size_t kTinyDecoder = 3;
constexpr int64_t kHistory = 2;  // number of earlier frames that a convolution over three frames
                                 // reads
// A copy of the constant in engine/ops/fused_convolution.h, which this file cannot include because
// it needs LibTorch.
constexpr int64_t kFusedChannelBytes = 64;

// The shape of an activation, and the block of memory that it holds.
struct Feature {
  int64_t channels = 0;
  int64_t frames = 0;
  int64_t height = 0;
  int64_t width = 0;
  MemoryWalk::Block block;
};

// Walks through the autoencoder's layers, taking blocks of a MemoryWalk where the layers allocate
// tensors. Each function is named after the layer that it walks through.
class VaeWalk {
 public:
  VaeWalk(const VaeConfig& config, int64_t element_bytes)
      : config_(config), element_bytes_(element_bytes), normed_bytes_(element_bytes) {}
  // Use this constructor for the kernels of fused_convolution.h, which read `normed_bytes` bytes
  // per value after a norm.
  VaeWalk(const VaeConfig& config, int64_t element_bytes, int64_t normed_bytes)
      : config_(config), element_bytes_(element_bytes), normed_bytes_(normed_bytes), fused_(true) {}

  // Also counts the finite check of decoded chunks, which keeps each chunk until the next chunk is
  // decoded.
  void CheckChunks() { checks_chunks_ = true; }

  // Walk through VideoAutoencoder::Decode or Encode. The walk covers only the first three chunks
  // (four if chunks are checked), because later chunks need the same memory.
  void Decode(const LatentSize& size);
  void Encode(const LatentSize& size);

  uint64_t peak() const { return walk_.peak(); }

 private:
  int64_t Bytes(int64_t channels, int64_t frames, const Feature& like) const {
    return channels * frames * like.height * like.width * element_bytes_;
  }

  Feature Make(int64_t channels, int64_t frames, int64_t height, int64_t width) {
    return {channels, frames, height, width,
            walk_.Take(channels * frames * height * width * element_bytes_)};
  }
  Feature MakeLike(const Feature& x, int64_t channels) {
    return Make(channels, x.frames, x.height, x.width);
  }

  // Whether a convolution with `out` output channels runs as one fused kernel (see Supports in
  // engine/ops/convolution_sm90.cu, which also requires whole chunks of input channels).
  bool IsFused(int64_t out) const {
    constexpr int64_t kFewChannels = 16;
    return fused_ && (out % 192 == 0 || out % 128 == 0 || out % 96 == 0 || out <= kFewChannels);
  }

  // CausalConv3d as one fused kernel: new frames are written next to the history, and the last of
  // them become the next history.
  Feature FusedConv(const Feature& x, int64_t out, MemoryWalk::Block* given, int64_t value_bytes) {
    const int64_t chunk = kFusedChannelBytes / value_bytes;
    const int64_t channels = (x.channels + chunk - 1) / chunk * chunk;
    const int64_t frame = channels * x.height * x.width * value_bytes;
    const auto fresh = walk_.Take(std::max<int64_t>(x.frames - kHistory, 0) * frame);
    MemoryWalk::Block next = walk_.Take(kHistory * frame);
    if (given != nullptr) given->Free();
    Feature y = MakeLike(x, out);
    SkipSlot();
    histories_[slot_ - 1] = std::move(next);
    return y;
  }

  // A convolution allocates its history in its first run, and keeps it to the end of the video.
  void Remember(int64_t frames, const Feature& x) {
    SkipSlot();
    MemoryWalk::Block& history = histories_[slot_ - 1];
    if (!history.held()) history = walk_.Take(Bytes(x.channels, frames, x));
  }

  // Skips the history of a convolution that does not run in this chunk.
  void SkipSlot() {
    if (++slot_ > histories_.size()) histories_.emplace_back();
  }

  // CausalConv3d allocates its input together with the earlier frames, then its output. If `given`
  // is x's block, CausalConv3d frees it between these two allocations.
  Feature CausalConv(const Feature& x, int64_t out, int64_t out_frames, int64_t history,
                     MemoryWalk::Block* given = nullptr) {
    if (history == kHistory && IsFused(out)) {
      // A caller passes `given` only if the input is normalised.
      return FusedConv(x, out, given, given != nullptr ? normed_bytes_ : element_bytes_);
    }
    const auto window = walk_.Take(Bytes(x.channels, x.frames + history, x));
    if (given != nullptr) given->Free();
    Remember(history, x);
    return Make(out, out_frames, x.height, x.width);
  }
  Feature CausalConv(const Feature& x, int64_t out) {
    return CausalConv(x, out, x.frames, kHistory);
  }
  // Walks through a NormSiluConv3d that frees its input as soon as it has read it.
  Feature CausalConvOf(Feature x, int64_t out) {
    return CausalConv(x, out, x.frames, kHistory, &x.block);
  }

  Feature Residual(const Feature& x, int64_t out) {
    // The first convolution's input is normalised as well, but the residual block keeps it.
    MemoryWalk::Block kept;
    Feature y = CausalConvOf(CausalConv(x, out, x.frames, kHistory, &kept), out);
    if (x.channels != out && !IsFused(out)) walk_.Touch(Bytes(out, x.frames, x));
    return y;
  }

  Feature Attention(const Feature& x) {
    const auto rows = walk_.Take(Bytes(x.channels, x.frames, x));
    const auto qkv = walk_.Take(Bytes(3 * x.channels, x.frames, x));
    // The attention makes separate copies of queries, keys and values.
    const auto apart = walk_.Take(Bytes(3 * x.channels, x.frames, x));
    const auto attended = walk_.Take(Bytes(x.channels, x.frames, x));
    return MakeLike(x, x.channels);
  }

  Feature Middle(const Feature& x) {
    Feature first = Residual(x, x.channels);
    const Feature attended = Attention(first);
    first.block.Free();
    return Residual(attended, x.channels);
  }

  // `out` is the number of output channels of the 2D convolution.
  Feature Upsample(Feature x, bool temporal, int64_t out) {
    int64_t time_factor = 1;
    if (temporal && !first_chunk_) {
      x = CausalConv(x, 2 * x.channels, x.frames, kHistory);
      x.channels /= 2;
      time_factor = 2;
    } else if (temporal) {
      SkipSlot();
    }
    if (IsFused(out)) return Make(out, x.frames * time_factor, 2 * x.height, 2 * x.width);
    x = Make(x.channels, x.frames * time_factor, 2 * x.height, 2 * x.width);
    return MakeLike(x, out);
  }

  Feature Downsample(const Feature& x, bool temporal) {
    auto bordered =
        walk_.Take(x.channels * x.frames * (x.height + 1) * (x.width + 1) * element_bytes_);
    Feature y = Make(x.channels, x.frames, x.height / 2, x.width / 2);
    bordered.Free();
    if (!temporal) return y;
    if (!first_chunk_) return CausalConv(y, y.channels, y.frames / 2, /*history=*/1);
    Remember(1, y);
    return y;
  }

  Feature DecoderStage(Feature x, int64_t out, std::optional<bool> up);
  Feature EncoderStage(const Feature& x, int64_t out, std::optional<bool> down);
  void DecodeChunk(const LatentSize& size);
  void EncodeChunk(int64_t frames, int64_t height, int64_t width);

  bool HasShortcuts() const { return config_.kind == VaeKind::kWan22; }

  const VaeConfig& config_;
  const int64_t element_bytes_;
  const int64_t normed_bytes_;
  const bool fused_ = false;
  MemoryWalk walk_;
  std::deque<MemoryWalk::Block> histories_;
  bool checks_chunks_ = false;
  MemoryWalk::Block pending_;     // the last chunk, whose finite check is not finished
  MemoryWalk::Block on_its_way_;  // 8-bit frames whose download may still be running
  size_t slot_ = 0;
  bool first_chunk_ = true;
};

Feature VaeWalk::DecoderStage(Feature x, int64_t out, std::optional<bool> up) {
  MemoryWalk::Block shortcut;
  for (int i = 0; i < config_.num_res_blocks + 1; ++i) {
    Feature y = Residual(x, out);
    // The stage's input is kept until the shortcut around the stage has read it.
    if (i == 0 && up.has_value() && HasShortcuts()) shortcut = std::move(x.block);
    x = std::move(y);
  }
  if (!up.has_value()) return x;
  // VAE 2.1 has no shortcuts and halves the channels when upsampling.
  return Upsample(std::move(x), *up, HasShortcuts() ? out : out / 2);
}

void VaeWalk::DecodeChunk(const LatentSize& size) {
  slot_ = 0;
  const size_t stages = config_.dim_mult.size();
  const int64_t innermost = config_.decoder_base_dim * config_.dim_mult.back();
  Feature latents = Make(config_.z_dim, 1, size.height, size.width);
  Feature x = CausalConv(latents, innermost);
  latents.block.Free();
  x = Middle(x);
  for (size_t i = 0; i < stages; ++i) {
    const int64_t out = config_.decoder_base_dim * config_.dim_mult[stages - 1 - i];
    const std::optional<bool> up =
        i + 1 == stages ? std::nullopt
                        : std::optional<bool>(config_.temporal_downsample[stages - 2 - i]);
    x = DecoderStage(std::move(x), out, up);
  }
  const int64_t patch = config_.patch_size * config_.patch_size;
  x = CausalConvOf(std::move(x), kColors * patch);
  const int64_t pixels = kFp32 * kColors * patch * x.frames * x.height * x.width;
  if (checks_chunks_) std::swap(x.block, pending_);
  const auto frames = walk_.Take(pixels);
  x.block.Free();
  // A download to the host makes two fp32 copies (one clamped, one scaled) and two copies in 8
  // bits. The second 8-bit copy lives until the next chunk's download.
  const auto scaled = walk_.Take(2 * pixels);
  const int64_t bytes = pixels / kFp32;
  walk_.Touch(2 * bytes);
  MemoryWalk::Block on_its_way = walk_.Take(bytes);
  on_its_way_ = std::move(on_its_way);
  first_chunk_ = false;
}

void VaeWalk::Decode(const LatentSize& size) {
  const int64_t chunks = std::min<int64_t>(size.frames, checks_chunks_ ? 4 : 3);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) DecodeChunk(size);
}

Feature VaeWalk::EncoderStage(const Feature& x, int64_t out, std::optional<bool> down) {
  Feature y;
  for (int i = 0; i < config_.num_res_blocks; ++i) {
    Feature next = Residual(i == 0 ? x : y, out);
    y = std::move(next);
  }
  if (down.has_value()) y = Downsample(y, *down);
  if (HasShortcuts()) {
    // The input, padded to an even number of frames if needed, and a copy of its values sorted for
    // averaging.
    const bool pads = down.value_or(false) && x.frames % 2 != 0;
    const int64_t whole_frames = x.frames + (pads ? 1 : 0);
    const auto whole = walk_.Take(pads ? Bytes(x.channels, whole_frames, x) : 0);
    const auto sorted = walk_.Take(Bytes(x.channels, whole_frames, x));
    walk_.Touch(Bytes(out, y.frames, y));
  }
  return y;
}

void VaeWalk::EncodeChunk(int64_t frames, int64_t height, int64_t width) {
  slot_ = 0;
  const int64_t patch = config_.patch_size;
  const auto pixels = walk_.Take(kColors * frames * height * width * 4);
  Feature folded = Make(kColors * patch * patch, frames, height / patch, width / patch);
  Feature x = CausalConv(folded, config_.base_dim);
  folded.block.Free();
  const size_t stages = config_.dim_mult.size();
  for (size_t i = 0; i < stages; ++i) {
    const std::optional<bool> down =
        i + 1 == stages ? std::nullopt : std::optional<bool>(config_.temporal_downsample[i]);
    x = EncoderStage(x, config_.base_dim * config_.dim_mult[i], down);
  }
  x = Middle(x);
  x = CausalConvOf(std::move(x), 2 * config_.z_dim);
  walk_.Touch(2 * Bytes(2 * config_.z_dim, x.frames, x));
  first_chunk_ = false;
}

void VaeWalk::Encode(const LatentSize& size) {
  const int64_t height = size.height * config_.stride_spatial;
  const int64_t width = size.width * config_.stride_spatial;
  for (int64_t chunk = 0; chunk < std::min<int64_t>(size.frames, 3); ++chunk) {
    EncodeChunk(chunk == 0 ? 1 : config_.stride_temporal, height, width);
  }
}

// Adds up the operations of all convolutions of one pass, from the sizes of their outputs.
class FlopCount {
 public:
  FlopCount(const VaeConfig& config, const LatentSize& size)
      : config_(config),
        latents_{static_cast<double>(size.frames), static_cast<double>(size.height * size.width)} {}

  double Decode() {
    const size_t stages = config_.dim_mult.size();
    Place place = latents_;
    double width = DecoderWidth(stages - 1);
    Convolve(place, Z(), Z(), 1);
    Convolve(place, Z(), width, 27);
    Middle(place, width);
    for (size_t i = 0; i < stages; ++i) {
      const double out = DecoderWidth(stages - 1 - i);
      for (int block = 0; block < config_.num_res_blocks + 1; ++block) {
        Residual(place, width, out);
        width = out;
      }
      if (i + 1 == stages) break;
      if (config_.temporal_downsample[stages - 2 - i]) {
        // Upsampling does not double the first latent frame.
        Convolve({place.frames - 1, place.area}, width, 2 * width, 3);
        place.frames = 2 * place.frames - 1;
      }
      place.area *= 4;
      const double narrower = config_.kind == VaeKind::kWan21 ? width / 2 : width;
      Convolve(place, width, narrower, 9);
      width = narrower;
    }
    Convolve(place, width, Pixels(), 27);
    return flops_;
  }

  double Encode() {
    const size_t stages = config_.dim_mult.size();
    Place place = latents_;
    // Computes the size in pixels from the size of the latents.
    for (size_t i = 0; i + 1 < stages; ++i) {
      if (config_.temporal_downsample[i]) place.frames = 2 * place.frames - 1;
      place.area *= 4;
    }
    double width = static_cast<double>(config_.base_dim);
    Convolve(place, Pixels(), width, 27);
    for (size_t i = 0; i < stages; ++i) {
      const double out = static_cast<double>(config_.base_dim * config_.dim_mult[i]);
      for (int block = 0; block < config_.num_res_blocks; ++block) {
        Residual(place, width, out);
        width = out;
      }
      if (i + 1 == stages) break;
      place.area /= 4;
      Convolve(place, width, width, 9);
      if (!config_.temporal_downsample[i]) continue;
      place.frames = (place.frames + 1) / 2;
      Convolve({place.frames - 1, place.area}, width, width, 3);
    }
    Middle(place, width);
    Convolve(place, width, 2 * Z(), 27);
    Convolve(place, 2 * Z(), 2 * Z(), 1);
    return flops_;
  }

 private:
  struct Place {
    double frames;
    double area;
  };

  double Z() const { return static_cast<double>(config_.z_dim); }
  double Pixels() const {
    return 3.0 * static_cast<double>(config_.patch_size * config_.patch_size);
  }
  double DecoderWidth(size_t stage) const {
    return static_cast<double>(config_.decoder_base_dim * config_.dim_mult[stage]);
  }

  void Convolve(const Place& place, double in, double out, double taps) {
    flops_ += 2 * place.frames * place.area * in * out * taps;
  }

  void Residual(const Place& place, double in, double out) {
    Convolve(place, in, out, 27);
    Convolve(place, out, out, 27);
    if (in != out) Convolve(place, in, out, 1);
  }

  // The attention has one head and covers the pixels of one frame at a time.
  void Middle(const Place& place, double width) {
    Residual(place, width, width);
    Convolve(place, width, 3 * width, 1);
    flops_ += 4 * place.frames * place.area * place.area * width;
    Convolve(place, width, width, 1);
    Residual(place, width, width);
  }

  const VaeConfig& config_;
  const Place latents_;
  double flops_ = 0;
};

// Returns the bytes of the weights that a pass copies. The copies have 16 bits even for kTf32.
uint64_t CopiedWeightBytes(const VaeConfig& config, size_t group, const VaeArithmetic& arithmetic) {
  const auto [precision, fused, decoder] = arithmetic;
  if (precision == VaePrecision::kFp32) return 0;
  const WeightGroups weights = VaeWeightGroups(config);
  int64_t bytes = 0;
  for (const PackedWeight& weight : weights.groups()[group]) {
    bytes += weight.Bytes(kFp32) / 2;
    // KernelOverEnlargement turns a 3x3 kernel into four 2x2 kernels.
    const TensorSpec& tensor = weight.tensors.front();
    const bool enlarges = fused && group == kDecoder && tensor.shape.size() == 4 &&
                          tensor.name.find(".resample.") != std::string::npos;
    if (enlarges) bytes += weight.Bytes(ElementBytes(precision)) * 16 / 9;
  }
  return static_cast<uint64_t>(bytes);
}

VaeWalk WalkIn(const VaeConfig& config, const VaeArithmetic& arithmetic) {
  const auto [precision, fused, decoder] = arithmetic;
  const int64_t bytes = ElementBytes(precision);
  if (!fused || precision == VaePrecision::kFp32) return {config, bytes};
  constexpr int64_t kFp16 = 2;
  return {config, bytes, kFp16};
}

}  // namespace

double DecodingFlops(const VaeConfig& config, const LatentSize& size, Decoder decoder) {
  if (decoder == Decoder::kTiny) return TinyDecodingFlops(*config.tiny_decoder, size);
  return FlopCount(config, size).Decode();
}

double EncodingFlops(const VaeConfig& config, const LatentSize& size) {
  return FlopCount(config, size).Encode();
}

WeightGroups VaeWeightGroups(const VaeConfig& config) {
  WeightGroups groups(config.tiny_decoder.has_value() ? kTinyDecoder + 1 : kTinyDecoder);
  for (TensorSpec& tensor : ExpectedTensors(config)) {
    const bool encoder = tensor.name.starts_with("encoder.") || tensor.name.starts_with("conv1.");
    groups.Add(encoder ? kEncoder : kDecoder, std::move(tensor), WeightDtype::kFp32);
  }
  if (config.tiny_decoder.has_value()) {
    for (TensorSpec& tensor : ExpectedTensors(*config.tiny_decoder)) {
      groups.Add(kTinyDecoder, std::move(tensor), WeightDtype::kFp32);
    }
  }
  return groups;
}

uint64_t DecodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes) {
  VaeWalk walk(config, element_bytes);
  walk.Decode(size);
  return walk.peak();
}

uint64_t EncodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes) {
  VaeWalk walk(config, element_bytes);
  walk.Encode(size);
  return walk.peak();
}

uint64_t DecodingBytes(const VaeConfig& config, const LatentSize& size,
                       const VaeArithmetic& arithmetic) {
  if (arithmetic.decoder == Decoder::kTiny) {
    return TinyDecodingBytes(*config.tiny_decoder, size, arithmetic.precision);
  }
  VaeWalk walk = WalkIn(config, arithmetic);
  if (MayLeaveFp16(arithmetic.precision)) walk.CheckChunks();
  walk.Decode(size);
  return walk.peak() + CopiedWeightBytes(config, kDecoder, arithmetic);
}

uint64_t EncodingBytes(const VaeConfig& config, const LatentSize& size,
                       const VaeArithmetic& arithmetic) {
  VaeWalk walk = WalkIn(config, arithmetic);
  walk.Encode(size);
  return walk.peak() + CopiedWeightBytes(config, kEncoder, arithmetic);
}

}  // namespace wan
