#include "engine/models/wan/vae.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/device/finite_check.h"
#include "engine/models/wan/chunk_outlet.h"
#include "engine/models/wan/tiny_decoder.h"
#include "engine/models/wan/vae_decoder.h"
#include "engine/models/wan/vae_encoder.h"
#include "engine/models/wan/vae_pipeline.h"
#include "engine/ops/duplicate_up_3d.h"
#include "engine/weights/weight_loader.h"

namespace wan {
namespace {

std::string ShapeOf(const at::Tensor& x) { return ShapeText({x.sizes().data(), x.sizes().size()}); }

template <typename... Parts>
absl::Status Wrong(const Parts&... what) {
  return absl::InvalidArgumentError(absl::StrCat("VAE config: ", what...));
}

// Checks the channel counts that VAE 2.2's parameter-free shortcuts need.
absl::Status CheckShortcuts(const VaeConfig& config) {
  const std::vector<int64_t>& mult = config.dim_mult;
  const size_t steps = mult.size() - 1;
  for (size_t i = 0; i < mult.size(); ++i) {
    const bool last = i == steps;
    const int64_t time_factor = !last && config.temporal_downsample[i] ? 2 : 1;
    const int64_t space_factor = last ? 1 : 2;
    const int64_t in = i == 0 ? 1 : mult[i - 1];
    if (in * time_factor * space_factor * space_factor % mult[i] != 0) {
      return Wrong("dim_mult[", i, "] = ", mult[i], " does not divide the values that stage ", i,
                   " of the encoder averages");
    }
  }
  for (size_t i = 0; i < steps; ++i) {
    const size_t stage = steps - i;  // the stage's index in the encoder
    const int64_t in = i == 0 ? mult[steps] : mult[stage + 1];
    const int64_t time_factor = config.temporal_downsample[stage - 1] ? 2 : 1;
    if (!SupportsDuplicateUp3d(in, mult[stage], time_factor, /*space_factor=*/2)) {
      return Wrong("widths ", in, " to ", mult[stage], " do not fit the duplication of stage ", i,
                   " of the decoder");
    }
  }
  return absl::OkStatus();
}

// Checks that VAE 2.1's decoder can halve its channels at each upsampling.
absl::Status CheckHalving(const VaeConfig& config) {
  for (size_t i = 1; i < config.dim_mult.size(); ++i) {
    const int64_t width = config.decoder_base_dim * config.dim_mult[i];
    if (width % 2 != 0) return Wrong("width ", width, " of stage ", i, " cannot be halved");
  }
  return absl::OkStatus();
}

absl::Status CheckConfig(const VaeConfig& config) {
  if (config.z_dim <= 0 || config.base_dim <= 0 || config.decoder_base_dim <= 0 ||
      config.patch_size <= 0 || config.num_res_blocks <= 0 || config.dim_mult.empty()) {
    return Wrong("z_dim, base_dim, decoder_base_dim, patch_size, num_res_blocks and the number of ",
                 "stages must be positive");
  }
  const size_t steps = config.dim_mult.size() - 1;
  if (config.temporal_downsample.size() != steps) {
    return Wrong("temporal_downsample has ", config.temporal_downsample.size(), " entries, ", steps,
                 " stages but the last ask for as many");
  }
  int64_t space = config.patch_size;
  int64_t time = 1;
  for (size_t i = 0; i < steps; ++i) {
    space *= 2;
    if (config.temporal_downsample[i]) time *= 2;
  }
  if (config.stride_spatial != space || config.stride_temporal != time) {
    return Wrong("strides ", config.stride_temporal, " and ", config.stride_spatial,
                 " do not follow from the stages, which give ", time, " and ", space);
  }
  for (size_t i = 0; i < config.dim_mult.size(); ++i) {
    if (config.dim_mult[i] <= 0) {
      return Wrong("dim_mult[", i, "] is ", config.dim_mult[i], ", not positive");
    }
  }
  absl::Status widths =
      config.kind == VaeKind::kWan22 ? CheckShortcuts(config) : CheckHalving(config);
  if (!widths.ok()) return widths;
  if (config.latents_mean.size() != static_cast<size_t>(config.z_dim) ||
      config.latents_std.size() != static_cast<size_t>(config.z_dim)) {
    return Wrong("latents_mean and latents_std have ", config.latents_mean.size(), " and ",
                 config.latents_std.size(), " entries, z_dim is ", config.z_dim);
  }
  for (size_t i = 0; i < config.latents_std.size(); ++i) {
    if (!std::isfinite(config.latents_mean[i]) || !std::isfinite(config.latents_std[i]) ||
        config.latents_std[i] <= 0) {
      return Wrong("latents_mean[", i, "] and latents_std[", i, "] are ", config.latents_mean[i],
                   " and ", config.latents_std[i], ", not finite and positive");
    }
  }
  return absl::OkStatus();
}

// Loading builds the encoder and the decoder once, to check names and shapes and to collect the
// weights. Each pass over a video then builds an encoder or decoder from the collected weights, in
// the pass's precision.
class WanVae final : public VideoAutoencoder {
 public:
  WanVae(const VaeConfig& config, const VaeOptions& options, WeightLoader& loader)
      : config_(config),
        options_(options),
        mean_(Statistics(config.latents_mean)),
        std_(Statistics(config.latents_std)) {
    LoadedVaeWeights weights(loader, tensors_);
    // The encoder and each decoder have a weight group of their own, because only one of them is in
    // use at a time. The first group is empty.
    loader.BeginGroup();
    VaeLayerFactory of_encoder(weights, /*allow_tf32=*/false);
    const VaeEncoder encoder(of_encoder, config);
    loader.BeginGroup();
    VaeLayerFactory of_decoder(weights, /*allow_tf32=*/false);
    const VaeDecoder decoder(of_decoder, config);
    if (config.tiny_decoder.has_value()) {
      loader.BeginGroup();
      VaeLayerFactory of_tiny(weights, /*allow_tf32=*/false);
      const TinyDecoder tiny(of_tiny, config);
    }
    weights_ = loader.Finish();
    weight_bytes_ = loader.bytes();
  }

  const VaeConfig& config() const override { return config_; }
  int64_t WeightBytes() const override {
    int64_t bytes = weight_bytes_;
    for (const std::unique_ptr<WanVae>& peer : peers_) bytes += peer->weight_bytes_;
    return bytes;
  }

  void AddPeer(std::unique_ptr<WanVae> peer) { peers_.push_back(std::move(peer)); }

  absl::StatusOr<at::Tensor> Encode(const at::Tensor& video, const VaePass& pass) const override {
    if (absl::Status status = CheckVideo(video); !status.ok()) return status;
    const c10::InferenceMode no_autograd;
    weights_->Use(kEncoderGroup, kEncoderGroup);
    const VaePrecision precision = PrecisionOf(pass);
    absl::StatusOr<at::Tensor> latents = EncodeIn(precision, video, pass.gate);
    if (!latents.ok() || !MayLeaveFp16(precision) || IsFinite(*latents)) return latents;
    return EncodeIn(Widen(precision, pass), video, pass.gate);
  }

  absl::Status Decode(const at::Tensor& latents, const FrameSink& sink,
                      const VaePass& pass) const override {
    if (absl::Status status = CheckLatents(latents); !status.ok()) return status;
    const bool tiny = pass.decoder == Decoder::kTiny;
    if (tiny && !config_.tiny_decoder.has_value()) {
      return absl::InvalidArgumentError("the autoencoder has no tiny decoder");
    }
    const c10::InferenceMode no_autograd;
    const size_t group = tiny ? kTinyGroup : kDecoderGroup;
    weights_->Use(group, group);
    const auto decode_in = [&](VaePrecision precision, int64_t first) {
      return tiny ? DecodeAlone<TinyDecoder>(precision, latents, first, sink, pass.gate)
                  : DecodeIn(precision, latents, first, sink, pass.gate);
    };
    const VaePrecision precision = PrecisionOf(pass);
    absl::StatusOr<int64_t> reached = decode_in(precision, 0);
    if (reached.ok() && *reached < latents.size(1)) {
      reached = decode_in(Widen(precision, pass), *reached);
    }
    return reached.status();
  }

 private:
  static constexpr size_t kEncoderGroup = 1;
  static constexpr size_t kDecoderGroup = 2;
  static constexpr size_t kTinyGroup = 3;

  // Makes the encoder or decoder in one precision. The layers of the result keep the tensors that
  // they need.
  template <typename Half>
  Half Make(VaePrecision precision) const {
    CastVaeWeights weights(tensors_, DTypeOf(precision));
    VaeLayerFactory factory(weights, precision == VaePrecision::kTf32);
    return Half(factory, config_);
  }

  static at::ScalarType DTypeOf(VaePrecision precision) {
    if (precision == VaePrecision::kFp16) return at::kHalf;
    return precision == VaePrecision::kBf16 ? at::kBFloat16 : at::kFloat;
  }

  VaePrecision PrecisionOf(const VaePass& pass) const {
    const bool computes = !options_.device.is_cpu() || pass.precision == VaePrecision::kBf16;
    return computes ? pass.precision : VaePrecision::kFp32;
  }

  // Returns the precision in which decoding goes on when values exceed the range of `precision`.
  static VaePrecision WiderThan(VaePrecision precision) {
    return precision == VaePrecision::kFp16 ? VaePrecision::kBf16 : VaePrecision::kFp32;
  }

  static VaePrecision Widen(VaePrecision precision, const VaePass& pass) {
    const VaePrecision wider = WiderThan(precision);
    if (pass.on_fallback) pass.on_fallback(precision, wider);
    return wider;
  }

  // Returns whether all values of the fp32 tensor are finite. Blocks until the device has computed
  // the values.
  static bool IsFinite(const at::Tensor& x) {
    FiniteCheck check;
    check.Begin(x);
    return check.IsFinite();
  }

  absl::StatusOr<at::Tensor> EncodeIn(VaePrecision precision, const at::Tensor& video,
                                      const WorkGate& gate) const {
    const auto encoder = Make<VaeEncoder>(precision);
    FeatureCache cache = encoder.NewCache();
    std::vector<at::Tensor> latents;
    const int64_t frames = video.size(1);
    for (int64_t begin = 0; begin < frames;) {
      if (gate.RequestedStop()) return Stopped("encoding");
      const int64_t count = begin == 0 ? 1 : config_.stride_temporal;
      const at::Tensor chunk =
          video.narrow(1, begin, count).to(options_.device, DTypeOf(precision));
      absl::StatusOr<at::Tensor> encoded = encoder.EncodeChunk(chunk, cache, gate);
      if (!encoded.ok()) return encoded.status();
      latents.push_back(encoded->to(at::kFloat));
      begin += count;
    }
    return at::cat(latents, /*dim=*/1).sub_(mean_).div_(std_);
  }

  // Decodes all latent frames, but hands on only the frames of latent frame `first` and later
  // latent frames. An earlier pass handed on the frames before `first`. Returns how many latent
  // frames are done: all, or only those before the first frame whose values exceeded the
  // precision's range.
  absl::StatusOr<int64_t> DecodeIn(VaePrecision precision, const at::Tensor& latents, int64_t first,
                                   const FrameSink& sink, const WorkGate& gate) const {
    if (peers_.empty() || latents.size(1) == 1) {
      return DecodeAlone<VaeDecoder>(precision, latents, first, sink, gate);
    }
    ChunkOutlet outlet(MayLeaveFp16(precision), first, sink);
    absl::Status status = DecodeTogether(precision, latents, outlet, gate);
    if (status.ok()) status = outlet.Finish();
    if (!status.ok()) return status;
    return outlet.reached();
  }

  // Decodes as DecodeIn does, but on this device alone, and with the decoder AnyDecoder.
  template <typename AnyDecoder>
  absl::StatusOr<int64_t> DecodeAlone(VaePrecision precision, const at::Tensor& latents,
                                      int64_t first, const FrameSink& sink,
                                      const WorkGate& gate) const {
    constexpr bool kTiny = std::is_same_v<AnyDecoder, TinyDecoder>;
    const bool denormalises = !kTiny || config_.tiny_decoder->denormalises;
    ChunkOutlet outlet(MayLeaveFp16(precision), first, sink);
    const auto decoder = Make<AnyDecoder>(precision);
    FeatureCache cache = decoder.NewCache();
    for (int64_t i = 0; i < latents.size(1); ++i) {
      if (gate.RequestedStop()) return Stopped("decoding");
      absl::StatusOr<at::Tensor> decoded =
          decoder.DecodeChunk(ChunkOf(latents, i, precision, denormalises), cache, gate);
      if (!decoded.ok()) return decoded.status();
      const absl::StatusOr<bool> go_on = outlet.Add(*std::move(decoded));
      if (!go_on.ok()) return go_on.status();
      if (!*go_on) break;
    }
    if (absl::Status status = outlet.Finish(); !status.ok()) return status;
    return outlet.reached();
  }

  absl::Status DecodeTogether(VaePrecision precision, const at::Tensor& latents,
                              ChunkOutlet& outlet, const WorkGate& gate) const {
    std::vector<const WanVae*> all = {this};
    for (const std::unique_ptr<WanVae>& peer : peers_) all.push_back(peer.get());
    std::vector<VaePipelineRank> ranks;
    for (const WanVae* const vae : all) {
      ranks.push_back({vae->options_.device,
                       [vae, precision] {
                         vae->weights_->Use(kDecoderGroup, kDecoderGroup);
                         return vae->Make<VaeDecoder>(precision);
                       },
                       vae->options_.exchanges});
    }
    // Copy all latents before any work is queued: a chunk's copy would wait for the work that is
    // queued on the first device by then.
    const at::Tensor there = latents.to(all.back()->options_.device);
    if (options_.exchanges != nullptr) options_.exchanges->CountSent(there.nbytes());
    const auto chunk = [&](int64_t i) { return all.back()->ChunkOf(there, i, precision); };
    const auto frames = [&outlet](int64_t, at::Tensor decoded) {
      return outlet.Add(std::move(decoded));
    };
    return RunVaePipeline(ranks, {latents.size(1), chunk, frames}, gate);
  }

  // Returns latent frame i in the dtype that the decoder needs. With `denormalises`, the values are
  // the full decoder's z; otherwise the transformer's (z - mean) / std.
  at::Tensor ChunkOf(const at::Tensor& latents, int64_t i, VaePrecision precision,
                     bool denormalises = true) const {
    const at::Tensor normalised = latents.narrow(1, i, 1).to(options_.device, at::kFloat);
    if (!denormalises) return normalised.to(DTypeOf(precision));
    return normalised.mul(std_).add_(mean_).to(DTypeOf(precision));
  }

  static absl::Status Stopped(const char* what) {
    return absl::CancelledError(absl::StrCat("video ", what, " was stopped on request"));
  }

  absl::Status CheckVideo(const at::Tensor& video) const {
    if (video.dim() != 4 || video.size(0) != 3 || video.size(1) < 1 ||
        (video.size(1) - 1) % config_.stride_temporal != 0 || !IsWhole(video.size(2)) ||
        !IsWhole(video.size(3)) || !video.is_floating_point()) {
      return absl::InvalidArgumentError(
          absl::StrCat("video to encode is ", Describe(video),
                       ", expected floating-point [3, 1 + n * ", config_.stride_temporal,
                       ", H, W] with H and W positive multiples of ", config_.stride_spatial));
    }
    return absl::OkStatus();
  }

  absl::Status CheckLatents(const at::Tensor& latents) const {
    if (latents.dim() != 4 || latents.size(0) != config_.z_dim || latents.numel() == 0 ||
        !latents.is_floating_point()) {
      return absl::InvalidArgumentError(absl::StrCat("latents to decode are ", Describe(latents),
                                                     ", expected floating-point [", config_.z_dim,
                                                     ", F, h, w]"));
    }
    return absl::OkStatus();
  }

  bool IsWhole(int64_t pixels) const { return pixels > 0 && pixels % config_.stride_spatial == 0; }

  static std::string Describe(const at::Tensor& x) {
    return x.defined() ? absl::StrCat(c10::toString(x.scalar_type()), " ", ShapeOf(x))
                       : std::string("undefined");
  }

  // Returns `values` as [z_dim, 1, 1, 1] in fp32.
  at::Tensor Statistics(const std::vector<double>& values) const {
    return at::tensor(values, at::kDouble)
        .to(options_.device, at::kFloat)
        .view({static_cast<int64_t>(values.size()), 1, 1, 1});
  }

  const VaeConfig config_;
  const VaeOptions options_;
  VaeTensors tensors_;  // all weights by name, in fp32
  std::shared_ptr<ComponentWeights> weights_;
  int64_t weight_bytes_ = 0;
  const at::Tensor mean_;
  const at::Tensor std_;
  std::vector<std::unique_ptr<WanVae>> peers_;  // autoencoders that decode together with this one
};

}  // namespace

absl::StatusOr<std::unique_ptr<VideoAutoencoder>> LoadWanVae(const WeightSource& weights,
                                                             const VaeConfig& config,
                                                             const VaeOptions& options) {
  if (absl::Status status = CheckConfig(config); !status.ok()) return status;
  const c10::InferenceMode no_autograd;
  WeightLoader loader(weights, options.device, at::kFloat, options.weights, options.stop);
  auto vae = std::make_unique<WanVae>(config, options, loader);
  if (!loader.status().ok()) return loader.status();
  return vae;
}

std::unique_ptr<VideoAutoencoder> MakeGroupVae(
    std::vector<std::unique_ptr<VideoAutoencoder>> ranks) {
  auto& first = static_cast<WanVae&>(*ranks.front());
  for (size_t i = 1; i < ranks.size(); ++i) {
    first.AddPeer(std::unique_ptr<WanVae>(static_cast<WanVae*>(ranks[i].release())));
  }
  return std::move(ranks.front());
}

}  // namespace wan
