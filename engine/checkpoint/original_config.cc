// Implements config_reader.h for upstream's layout and for files without a config.
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/checkpoint/config_limits.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/upstream_constants.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/json_text.h"

namespace wan {
namespace {

using Problems = std::vector<absl::Status>;

// Dimensions that all published models share and that the shapes of tensors do not show.
constexpr int64_t kPublishedHeadWidth = 128;
constexpr int64_t kPublishedTextLength = 512;
constexpr double kPublishedEps = 1e-6;

// Reads dimensions from the shapes of tensors, by their names. If a tensor is missing, the result
// is 0, and the object remembers that the shapes are not sufficient.
class Shapes {
 public:
  Shapes(const TensorFiles& files, const std::string& where, Problems& problems)
      : where_(where), complete_(files.problems.empty()), problems_(problems) {
    for (const TensorFile& file : files.files) {
      for (const StoredTensor& tensor : file.tensors) shapes_.emplace(tensor.name, &tensor.shape);
    }
  }

  // Returns the size of dimension `axis` of a tensor that must have `rank` dimensions.
  int64_t Extent(std::string_view name, size_t rank, size_t axis) {
    const auto found = shapes_.find(name);
    const std::string tensor = absl::StrCat("tensor ", std::string(name));
    if (found == shapes_.end()) {
      sufficient_ = false;
      // If some files could not be read, the tensor may be in one of them, so do not report it.
      if (complete_ && reported_.insert(tensor).second) {
        problems_.push_back(Absent(where_, absl::StrCat(tensor, " is missing")));
      }
      return 0;
    }
    const std::vector<int64_t>& shape = *found->second;
    if (shape.size() != rank) {
      sufficient_ = false;
      if (!reported_.insert(tensor).second) return 0;
      problems_.push_back(Damaged(where_, absl::StrCat(tensor, " has shape ", ShapeText(shape),
                                                       ", expected ", rank, " axes")));
      return 0;
    }
    return shape[axis];
  }

  // Returns the number of dimensions of a tensor; 0 if it is missing.
  size_t Rank(std::string_view name) const {
    const auto found = shapes_.find(name);
    return found == shapes_.end() ? 0 : found->second->size();
  }

  bool sufficient() const { return sufficient_; }

  // Returns 1 plus the largest N of all names that begin with "blocks.N.". A block counts if it has
  // at least one tensor, so that its missing tensors are reported.
  int64_t Blocks() const {
    constexpr std::string_view kPrefix = "blocks.";
    int64_t blocks = 0;
    for (const auto& [name, shape] : shapes_) {
      if (!name.starts_with(kPrefix)) continue;
      int64_t index = 0;
      const char* const end = name.data() + name.size();
      const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, index);
      if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '.' &&
          index < kMaxLayers) {
        blocks = std::max(blocks, index + 1);
      }
    }
    return blocks;
  }

 private:
  std::map<std::string_view, const std::vector<int64_t>*> shapes_;
  const std::string& where_;
  const bool complete_;
  bool sufficient_ = true;
  std::set<std::string> reported_;  // tensors with a problem, of which several axes are read
  Problems& problems_;
};

constexpr std::string_view kPatches = "patch_embedding.weight";
// The patch of all published models. rCM's checkpoints have a linear layer in the place of the
// convolution, whose weight does not show the patch.
constexpr std::array<int64_t, 3> kPatch = {1, 2, 2};

void ReadPatchSize(Shapes& shapes, TransformerConfig& config) {
  for (size_t axis = 0; axis < config.patch_size.size(); ++axis) {
    config.patch_size[axis] =
        shapes.Rank(kPatches) == 2 ? kPatch[axis] : shapes.Extent(kPatches, 5, 2 + axis);
  }
}

template <typename Config>
std::optional<Config> Checked(const Config& config, const std::string& where, Problems& problems) {
  const std::vector<std::string> contradictions = Contradictions(config);
  for (const std::string& what : contradictions) problems.push_back(Damaged(where, what));
  return contradictions.empty() ? std::optional(config) : std::nullopt;
}

}  // namespace

std::optional<TransformerConfig> ReadOriginalTransformer(const std::string& config_path,
                                                         const TensorFiles& files,
                                                         const std::string& where,
                                                         Problems& problems) {
  const absl::StatusOr<nlohmann::json> json = ReadJsonObject(config_path);
  if (!json.ok()) {
    problems.push_back(json.status());
    return std::nullopt;
  }
  JsonFields fields(*json, config_path);
  if (const std::string name = fields.Text("_class_name"); !name.empty() && name != "WanModel") {
    fields.Refuse(absl::StrCat("the transformer is a ", Printable(name), ", expected WanModel"));
  }
  TransformerConfig config;
  config.dim = fields.Integer("dim", 1, kMaxWidth);
  config.ffn_dim = fields.Integer("ffn_dim", 1, kMaxWidth);
  config.freq_dim = fields.Integer("freq_dim", 1, kMaxWidth);
  config.num_heads = fields.Integer("num_heads", 1, kMaxWidth);
  config.num_layers = fields.Integer("num_layers", 1, kMaxLayers);
  config.in_channels = fields.Integer("in_dim", 1, kMaxWidth);
  config.out_channels = fields.Integer("out_dim", 1, kMaxWidth);
  config.text_len = fields.Integer("text_len", 1, kMaxWidth);
  config.eps = fields.Number("eps");
  config.model_type = fields.Text("model_type");
  problems.insert(problems.end(), fields.problems().begin(), fields.problems().end());
  Shapes shapes(files, where, problems);
  config.text_dim = shapes.Extent("text_embedding.0.weight", 2, 1);
  ReadPatchSize(shapes, config);
  if (!fields.problems().empty() || !shapes.sufficient()) return std::nullopt;
  return Checked(config, config_path, problems);
}

std::optional<TextEncoderConfig> ReadOriginalTextEncoder(const TensorFiles& files,
                                                         const std::string& where,
                                                         Problems& problems) {
  TextEncoderConfig config;
  Shapes shapes(files, where, problems);
  constexpr std::string_view kPositions = "blocks.0.pos_embedding.embedding.weight";
  config.vocab_size = shapes.Extent("token_embedding.weight", 2, 0);
  config.dim = shapes.Extent("token_embedding.weight", 2, 1);
  config.ffn_dim = shapes.Extent("blocks.0.ffn.fc1.weight", 2, 0);
  config.num_buckets = shapes.Extent(kPositions, 2, 0);
  config.num_heads = shapes.Extent(kPositions, 2, 1);
  config.num_layers = shapes.Blocks();
  const int64_t attention_dim = shapes.Extent("blocks.0.attn.q.weight", 2, 0);
  if (!shapes.sufficient()) return std::nullopt;
  config.head_dim = config.num_heads > 0 ? attention_dim / config.num_heads : 0;
  return Checked(config, where, problems);
}

std::optional<TransformerConfig> ReadTransformerShapes(Naming naming, const TensorFiles& files,
                                                       const std::string& where,
                                                       const std::optional<TransformerConfig>& like,
                                                       Problems& problems) {
  const bool upstream = naming == Naming::kUpstream;
  const auto named = [&](const char* name, const char* diffusers) {
    return upstream ? name : diffusers;
  };
  TransformerConfig config;
  Shapes shapes(files, where, problems);
  ReadPatchSize(shapes, config);
  if (shapes.Rank(kPatches) == 2) {
    config.dim = shapes.Extent(kPatches, 2, 0);
    config.in_channels = shapes.Extent(kPatches, 2, 1) / (kPatch[0] * kPatch[1] * kPatch[2]);
  } else {
    config.dim = shapes.Extent(kPatches, 5, 0);
    config.in_channels = shapes.Extent(kPatches, 5, 1);
  }
  config.ffn_dim =
      shapes.Extent(named("blocks.0.ffn.0.weight", "blocks.0.ffn.net.0.proj.weight"), 2, 0);
  config.freq_dim = shapes.Extent(
      named("time_embedding.0.weight", "condition_embedder.time_embedder.linear_1.weight"), 2, 1);
  config.text_dim = shapes.Extent(
      named("text_embedding.0.weight", "condition_embedder.text_embedder.linear_1.weight"), 2, 1);
  config.num_layers = shapes.Blocks();
  const int64_t outputs = shapes.Extent(named("head.head.weight", "proj_out.weight"), 2, 0);
  if (!shapes.sufficient()) return std::nullopt;
  // The product cannot overflow: Contradictions() refuses larger patches.
  int64_t patch = 1;
  for (const int64_t extent : config.patch_size) patch *= std::min(extent, kMaxPatch + 1);
  config.out_channels = patch > 0 ? outputs / patch : 0;
  config.text_len = kPublishedTextLength;
  config.eps = kPublishedEps;
  if (like.has_value() && like->dim == config.dim) {
    config.num_heads = like->num_heads;
    config.text_len = like->text_len;
    config.eps = like->eps;
    config.cross_attn_norm = like->cross_attn_norm;
    config.qk_norm = like->qk_norm;
    config.model_type = like->model_type;
  } else if (config.dim % kPublishedHeadWidth != 0) {
    problems.push_back(
        Unsupported(where, absl::StrCat("has the width ", config.dim,
                                        ", which is not a multiple of the ", kPublishedHeadWidth,
                                        " of a head; name a folder whose config.json has "
                                        "the number of heads as well (path=FOLDER)")));
    return std::nullopt;
  } else {
    config.num_heads = config.dim / kPublishedHeadWidth;
  }
  return Checked(config, where, problems);
}

std::optional<VaeConfig> ReadVaeShapes(Naming naming, const TensorFiles& files,
                                       const std::string& where, Problems& problems) {
  const bool upstream = naming == Naming::kUpstream;
  Shapes shapes(files, where, problems);
  const int64_t channels =
      shapes.Extent(upstream ? "conv2.weight" : "post_quant_conv.weight", 5, 0);
  const int64_t width =
      shapes.Extent(upstream ? "encoder.conv1.weight" : "encoder.conv_in.weight", 5, 0);
  const int64_t decoder_width =
      shapes.Extent(upstream ? "decoder.head.0.gamma" : "decoder.norm_out.gamma", 4, 0);
  if (!shapes.sufficient()) return std::nullopt;
  for (const VaeKind kind : {VaeKind::kWan21, VaeKind::kWan22}) {
    VaeConfig config = UpstreamVae(kind);
    if (static_cast<int64_t>(config.latents_mean.size()) != channels) continue;
    config.z_dim = channels;
    config.base_dim = width;
    config.decoder_base_dim = decoder_width / config.dim_mult.front();
    SetStrides(config);
    return Checked(config, where, problems);
  }
  problems.push_back(Unsupported(where, absl::StrCat("is a VAE with ", channels,
                                                     " latent channels; must have 16 (Wan2.1) or "
                                                     "48 (Wan2.2)")));
  return std::nullopt;
}

std::optional<TinyDecoderConfig> ReadTinyDecoderShapes(const TensorFiles& files,
                                                       const std::string& where,
                                                       Problems& problems) {
  Shapes shapes(files, where, problems);
  TinyDecoderConfig config;
  config.z_dim = shapes.Extent("decoder.1.weight", 4, 1);
  config.widths[0] = shapes.Extent("decoder.1.weight", 4, 0);
  config.widths[1] = shapes.Extent("decoder.8.weight", 4, 0);
  config.widths[2] = shapes.Extent("decoder.14.weight", 4, 0);
  config.widths[3] = shapes.Extent("decoder.20.weight", 4, 0);
  const int64_t pixels = shapes.Extent("decoder.22.bias", 1, 0);
  if (!shapes.sufficient()) return std::nullopt;
  config.patch_size = pixels == 12 ? 2 : 1;
  // Only the file's name shows which latents the decoder takes.
  config.denormalises =
      absl::StrContains(std::filesystem::path(where).filename().string(), "lighttae");
  return Checked(config, where, problems);
}

std::optional<VaeConfig> ReadOriginalVae(VaeKind kind, const TensorFiles& files,
                                         const std::string& where, Problems& problems) {
  VaeConfig config = UpstreamVae(kind);
  Shapes shapes(files, where, problems);
  config.z_dim = shapes.Extent("conv2.weight", 5, 0);
  config.base_dim = shapes.Extent("encoder.conv1.weight", 5, 0);
  config.decoder_base_dim = shapes.Extent("decoder.head.0.gamma", 4, 0) / config.dim_mult.front();
  if (!shapes.sufficient()) return std::nullopt;
  SetStrides(config);
  return Checked(config, where, problems);
}

}  // namespace wan
