#include "benchmarks/vae_work.h"

#include <cstddef>

namespace wan {
namespace {

// Sums up the convolutions of one pass; frames and sides are those of their outputs.
class Count {
 public:
  Count(const VaeConfig& config, const BenchShape& shape)
      : config_(config),
        latents_(static_cast<double>((shape.frames - 1) / config.stride_temporal + 1)),
        height_(static_cast<double>(shape.height) / static_cast<double>(config.stride_spatial)),
        width_(static_cast<double>(shape.width) / static_cast<double>(config.stride_spatial)) {}

  double Decode() {
    const size_t stages = config_.dim_mult.size();
    Place place{latents_, height_ * width_};
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
        // Not for the first latent frame, which stays one.
        Convolve({place.frames - 1, place.area}, width, 2 * width, 3);
        place.frames = 2 * place.frames - 1;
      }
      place.area *= 4;
      const double narrower = config_.kind == VaeKind::kWan21 ? width / 2 : width;
      Convolve(place, width, narrower, 9);
      width = narrower;
    }
    Convolve(place, width, Pixels(), 27);
    return flop_;
  }

  double Encode() {
    const size_t stages = config_.dim_mult.size();
    Place place{latents_, height_ * width_};
    // From the latents back to the video.
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
    return flop_;
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
    flop_ += 2 * place.frames * place.area * in * out * taps;
  }

  void Residual(const Place& place, double in, double out) {
    Convolve(place, in, out, 27);
    Convolve(place, out, out, 27);
    if (in != out) Convolve(place, in, out, 1);
  }

  // The attention is one of each frame's pixels, with one head.
  void Middle(const Place& place, double width) {
    Residual(place, width, width);
    Convolve(place, width, 3 * width, 1);
    flop_ += 4 * place.frames * place.area * place.area * width;
    Convolve(place, width, width, 1);
    Residual(place, width, width);
  }

  const VaeConfig& config_;
  const double latents_;
  const double height_;
  const double width_;
  double flop_ = 0;
};

}  // namespace

double VaeDecodeFlop(const VaeConfig& config, const BenchShape& shape) {
  return Count(config, shape).Decode();
}

double VaeEncodeFlop(const VaeConfig& config, const BenchShape& shape) {
  return Count(config, shape).Encode();
}

}  // namespace wan
