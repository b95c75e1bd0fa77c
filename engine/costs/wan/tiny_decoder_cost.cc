#include "engine/costs/wan/tiny_decoder_cost.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/checkpoint/expected_tensors.h"
#include "engine/costs/memory_walk.h"
#include "engine/formats/dtype.h"

namespace wan {
namespace {

constexpr int64_t kColors = 3;
constexpr int64_t kFp32 = 4;

// The input of a stage for one latent frame: number of frames, and pixels per frame.
struct Place {
  int64_t frames = 1;
  int64_t pixels = 0;

  Place After(size_t stage) const {
    return {frames * TinyDecoderConfig::Growth(stage), 4 * pixels};
  }
};

Place PlaceOf(size_t stage, int64_t pixels) {
  Place place{1, pixels};
  for (size_t i = 0; i < stage; ++i) place = place.After(i);
  return place;
}

// Walks through the decoder's layers, taking blocks of a MemoryWalk where they allocate tensors.
class TinyWalk {
 public:
  TinyWalk(const TinyDecoderConfig& config, VaePrecision precision)
      : config_(config),
        element_bytes_(ElementBytes(precision)),
        checks_chunks_(MayLeaveFp16(precision)) {}

  // Walks through the first three chunks only (four if chunks are checked), because later chunks
  // need the same memory.
  uint64_t Decode(const LatentSize& size) {
    const int64_t chunks = std::min<int64_t>(size.frames, checks_chunks_ ? 4 : 3);
    for (int64_t chunk = 0; chunk < chunks; ++chunk) DecodeChunk(size, chunk == 0);
    return walk_.peak();
  }

 private:
  using Block = MemoryWalk::Block;

  Block Make(int64_t channels, const Place& place) {
    return walk_.Take(channels * place.frames * place.pixels * element_bytes_);
  }

  // The caller holds the input.
  Block Forward(int64_t width, const Place& place, Block& before) {
    Block both = Make(2 * width, place);
    Block last = Make(width, {1, place.pixels});
    before = std::move(last);
    Block first = Make(width, place);
    both.Free();
    Block second = Make(width, place);
    first.Free();
    Block third = Make(width, place);
    return third;
  }

  void DecodeChunk(const LatentSize& size, bool first) {
    Place place{1, size.height * size.width};
    Block x;
    const Block latents = Make(config_.z_dim, place);
    {
      const Block clamped = Make(config_.z_dim, place);
      x = Make(config_.widths[0], place);
    }
    size_t slot = 0;
    for (size_t stage = 0; stage + 1 < kTinyStages; ++stage) {
      const int64_t width = config_.widths[stage];
      for (int block = 0; block < kTinyBlocks; ++block) {
        Block y = Forward(width, place, history_[slot++]);
        x = std::move(y);
      }
      Block grown = Make(TinyDecoderConfig::Growth(stage) * width, place);
      x = std::move(grown);
      place = place.After(stage);
      Block enlarged = Make(width, place);
      x = std::move(enlarged);
      Block out = Make(config_.widths[stage + 1], place);
      x = std::move(out);
    }
    if (first) place.frames = 1;
    const int64_t patch = config_.patch_size * config_.patch_size;
    Block folded = Make(kColors * patch, place);
    x = std::move(folded);
    Block pixels = Make(kColors * patch, place);
    x = std::move(pixels);
    Download(x, kColors * patch * place.frames * place.pixels);
  }

  // Does what the end of VaeWalk::DecodeChunk does.
  void Download(Block& x, int64_t values) {
    if (checks_chunks_) std::swap(x, pending_);
    const Block frames = walk_.Take(kFp32 * values);
    x.Free();
    const Block scaled = walk_.Take(2 * kFp32 * values);
    walk_.Touch(2 * values);
    Block on_its_way = walk_.Take(values);
    on_its_way_ = std::move(on_its_way);
  }

  const TinyDecoderConfig& config_;
  const int64_t element_bytes_;
  const bool checks_chunks_;
  MemoryWalk walk_;
  // For each block, the last frame of its previous input.
  std::array<Block, (kTinyStages - 1) * static_cast<size_t>(kTinyBlocks)> history_;
  Block pending_;     // the chunk whose check is not known yet
  Block on_its_way_;  // frames in 8 bits
};

uint64_t CopiedWeightBytes(const TinyDecoderConfig& config, VaePrecision precision) {
  if (ElementBytes(precision) == kFp32) return 0;
  int64_t bytes = 0;
  for (const TensorSpec& tensor : ExpectedTensors(config)) {
    bytes += AllocatedBytes(ElementCount(tensor.shape).value_or(0) * ElementBytes(precision));
  }
  return static_cast<uint64_t>(bytes);
}

double Convolution(const Place& place, int64_t in, int64_t out, int taps) {
  return 2.0 * static_cast<double>(place.frames) * static_cast<double>(place.pixels) *
         static_cast<double>(in) * static_cast<double>(out) * taps;
}

}  // namespace

uint64_t TinyDecodingBytes(const TinyDecoderConfig& config, const LatentSize& size,
                           VaePrecision precision) {
  return TinyWalk(config, precision).Decode(size) + CopiedWeightBytes(config, precision);
}

double TinyStageFlops(const TinyDecoderConfig& config, size_t stage, int64_t height,
                      int64_t width) {
  const Place place = PlaceOf(stage, height * width);
  const int64_t channels = config.widths[stage];
  const double block =
      Convolution(place, 2 * channels, channels, 9) + 2 * Convolution(place, channels, channels, 9);
  return kTinyBlocks * block +
         Convolution(place, channels, TinyDecoderConfig::Growth(stage) * channels, 1) +
         Convolution(place.After(stage), channels, config.widths[stage + 1], 9);
}

double TinyDecodingFlops(const TinyDecoderConfig& config, const LatentSize& size) {
  const Place latents{1, size.height * size.width};
  double flops = Convolution(latents, config.z_dim, config.widths.front(), 9);
  for (size_t stage = 0; stage + 1 < kTinyStages; ++stage) {
    flops += TinyStageFlops(config, stage, size.height, size.width);
  }
  const Place last = PlaceOf(kTinyStages - 1, size.height * size.width);
  const int64_t patch = kColors * config.patch_size * config.patch_size;
  const double pixels = Convolution(last, config.widths.back(), patch, 9);
  const auto frames = static_cast<double>(size.frames);
  // The first latent frame gives only one video frame, so fewer frames become pixels.
  return frames * (flops + pixels) - pixels * (1 - 1.0 / TinyDecoderConfig::kStrideTemporal);
}

}  // namespace wan
