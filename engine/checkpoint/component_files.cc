#include "engine/checkpoint/component_files.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/file_problem.h"
#include "engine/checkpoint/foreign_models.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/gguf.h"
#include "engine/formats/mapped_file.h"
#include "engine/formats/safetensors.h"
#include "engine/formats/torch_archive.h"

namespace wan {
namespace {

namespace fs = std::filesystem;

// The end of the name of an index of shards.
constexpr std::string_view kIndex = ".safetensors.index.json";
// Prefixes that all tensors of a transformer's file may have. ComfyUI writes the first two; rCM's
// archives have the transformer in a module "net".
constexpr std::string_view kPrefixes[] = {"model.diffusion_model.", "diffusion_model.", "net."};

struct Renamed {
  std::string_view from;
  std::string_view to;
};

// The text encoder's modules outside of its blocks: in the transformers library, then in llama.cpp.
constexpr Renamed kTextModules[] = {
    {"shared", "token_embedding"},        {"encoder.embed_tokens", "token_embedding"},
    {"encoder.final_layer_norm", "norm"}, {"token_embd", "token_embedding"},
    {"enc.output_norm", "norm"},
};
constexpr std::string_view kTextBlocks[] = {"encoder.block.", "enc.blk."};
// The modules of a block, which follow "encoder.block.N." or "enc.blk.N.".
constexpr Renamed kBlockModules[] = {
    {"layer.0.layer_norm", "norm1"},
    {"layer.0.SelfAttention.q", "attn.q"},
    {"layer.0.SelfAttention.k", "attn.k"},
    {"layer.0.SelfAttention.v", "attn.v"},
    {"layer.0.SelfAttention.o", "attn.o"},
    {"layer.0.SelfAttention.relative_attention_bias", "pos_embedding.embedding"},
    {"layer.1.layer_norm", "norm2"},
    {"layer.1.DenseReluDense.wi_0", "ffn.gate.0"},
    {"layer.1.DenseReluDense.wi_1", "ffn.fc1"},
    {"layer.1.DenseReluDense.wo", "ffn.fc2"},
    {"attn_norm", "norm1"},
    {"attn_q", "attn.q"},
    {"attn_k", "attn.k"},
    {"attn_v", "attn.v"},
    {"attn_o", "attn.o"},
    {"attn_rel_b", "pos_embedding.embedding"},
    {"ffn_norm", "norm2"},
    {"ffn_gate", "ffn.gate.0"},
    {"ffn_up", "ffn.fc1"},
    {"ffn_down", "ffn.fc2"},
};

// Splits a tensor's name at its last dot into the module and the ending, which begins with the dot.
std::pair<std::string_view, std::string_view> SplitModule(std::string_view name) {
  const size_t dot = std::min(name.rfind('.'), name.size());
  return {name.substr(0, dot), name.substr(dot)};
}

std::string Renaming(std::string_view prefix, std::string_view module, std::string_view rest) {
  return absl::StrCat(std::string(prefix), std::string(module), std::string(rest));
}

// Returns upstream's name of a tensor of the text encoder; unknown names are returned unchanged.
std::string TextEncoderName(std::string_view name) {
  const auto [module, rest] = SplitModule(name);
  for (const Renamed& renamed : kTextModules) {
    if (module == renamed.from) return Renaming("", renamed.to, rest);
  }
  for (const std::string_view blocks : kTextBlocks) {
    if (!module.starts_with(blocks)) continue;
    const std::string_view in_blocks = module.substr(blocks.size());
    const size_t dot = std::min(in_blocks.find('.'), in_blocks.size());
    for (const Renamed& renamed : kBlockModules) {
      if (in_blocks.substr(std::min(dot + 1, in_blocks.size())) != renamed.from) continue;
      return Renaming(absl::StrCat("blocks.", std::string(in_blocks.substr(0, dot)), "."),
                      renamed.to, rest);
    }
  }
  return std::string(name);
}

template <typename Visit>
void ForEachTensor(TensorFiles& files, Visit visit) {
  for (TensorFile& file : files.files) {
    for (StoredTensor& tensor : file.tensors) visit(tensor);
  }
}

void RemovePrefix(TensorFiles& files) {
  for (const std::string_view prefix : kPrefixes) {
    bool found = false;
    ForEachTensor(files,
                  [&](StoredTensor& tensor) { found = found || tensor.name.starts_with(prefix); });
    if (!found) continue;
    ForEachTensor(files, [&](StoredTensor& tensor) {
      if (tensor.name.starts_with(prefix)) tensor.name.erase(0, prefix.size());
    });
    return;
  }
}

// Renames the 8-bit weights of TurboDiffusion's linear layers to the usual names of weights.
void RenameInt8(TensorFiles& files) {
  constexpr std::string_view kInt8Weight = ".int8_weight";
  constexpr std::string_view kWeight = ".weight";
  ForEachTensor(files, [&](StoredTensor& tensor) {
    if (!tensor.name.ends_with(kInt8Weight)) return;
    tensor.name.replace(tensor.name.size() - kInt8Weight.size(), kInt8Weight.size(), kWeight);
  });
}

// The transformers library has two names for the token embedding. Then removes the second one,
// unless its shape shows that it is another tensor.
void RemoveTied(TensorFiles& files) {
  constexpr std::string_view kTied = "encoder.embed_tokens.";
  std::map<std::string, std::vector<int64_t>> shared;
  ForEachTensor(files, [&](StoredTensor& tensor) {
    if (tensor.name.starts_with("shared.")) shared.emplace(tensor.name, tensor.shape);
  });
  for (TensorFile& file : files.files) {
    std::erase_if(file.tensors, [&](const StoredTensor& tensor) {
      if (!tensor.name.starts_with(kTied)) return false;
      const auto same = shared.find(Renaming("shared", "", SplitModule(tensor.name).second));
      return same != shared.end() && same->second == tensor.shape;
    });
  }
}

TensorFiles OneFile(absl::StatusOr<TensorFile> file) {
  TensorFiles files;
  if (file.ok()) {
    files.files.push_back(*std::move(file));
  } else {
    files.problems.push_back(file.status());
  }
  return files;
}

// Returns whether the names are those of TAEHV, the layout of TAEW2.1 and TAEW2.2. Tiny decoders of
// still pictures lack the layer that makes several frames of one.
bool IsTinyDecoder(const std::set<std::string, std::less<>>& names) {
  constexpr std::string_view kLayers[] = {"decoder.3.conv.0.weight", "decoder.7.conv.weight",
                                          "decoder.13.conv.weight", "decoder.22.weight"};
  return std::all_of(std::begin(kLayers), std::end(kLayers),
                     [&](std::string_view layer) { return names.contains(layer); });
}

void KeepDecoder(TensorFiles& files) {
  for (TensorFile& file : files.files) {
    std::erase_if(file.tensors,
                  [](const StoredTensor& tensor) { return !tensor.name.starts_with("decoder."); });
  }
}

bool HasPrefix(const std::set<std::string, std::less<>>& names, std::string_view prefix) {
  const auto found = names.lower_bound(prefix);
  return found != names.end() && found->starts_with(prefix);
}

absl::StatusOr<TensorFile> ReadByContent(const std::string& path) {
  const absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<std::vector<std::byte>> beginning = (*file)->CopyBeginning();
  if (!beginning.ok()) return beginning.status();
  const std::string_view text(reinterpret_cast<const char*>(beginning->data()), beginning->size());
  if (text.starts_with("GGUF")) return ReadGguf(path);
  if (text.starts_with("PK\x03\x04")) return ReadTorchArchive(path);
  // A damaged torch archive still has the name of one. In a safetensors file, the header follows
  // its length.
  const bool is_named_torch = path.ends_with(".pth") || path.ends_with(".pt");
  constexpr size_t kHeaderAt = 8;
  const bool has_header = text.size() > kHeaderAt && text[kHeaderAt] == '{';
  if (is_named_torch && !has_header) return ReadTorchArchive(path);
  return ReadSafetensors(path);
}

}  // namespace

std::string_view NameOf(ComponentKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"transformer", "text encoder", "VAE",
                                                      "tiny decoder"};
  return kNames[static_cast<size_t>(kind)];
}

bool IsTensorFile(const std::string& path) {
  constexpr std::string_view kEndings[] = {".safetensors", kIndex, ".gguf", ".pth", ".pt"};
  std::error_code error;
  return fs::is_regular_file(path, error) &&
         std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

TensorFiles ReadComponentFiles(const std::string& path) {
  TensorFiles files;
  if (std::error_code error; !fs::is_directory(path, error)) {
    files = path.ends_with(kIndex) ? ReadShardedSafetensors(path) : OneFile(ReadByContent(path));
    RemovePrefix(files);
    RenameInt8(files);
    RemoveTied(files);
    return files;
  }
  for (const char* const stem : {"diffusion_pytorch_model", "model"}) {
    const std::string whole = (fs::path(path) / absl::StrCat(stem, ".safetensors")).string();
    const std::string index = absl::StrCat(whole, ".index.json");
    if (IsGiven(index)) return ReadComponentFiles(index);
    if (IsGiven(whole)) return ReadComponentFiles(whole);
  }
  files.problems.push_back(
      Absent(path,
             "has neither diffusion_pytorch_model.safetensors nor model.safetensors; must be "
             "the file of a component, or the folder with these files"));
  return files;
}

absl::StatusOr<Recognised> RecogniseComponent(const std::string& path, TensorFiles& files) {
  std::set<std::string, std::less<>> names;
  ForEachTensor(files, [&](StoredTensor& tensor) { names.insert(tensor.name); });
  if (IsTinyDecoder(names)) {
    KeepDecoder(files);
    return Recognised{ComponentKind::kTinyDecoder, Naming::kDiffusers};
  }
  if (const std::string foreign = NameForeignModel(names); !foreign.empty()) {
    return Unsupported(path, foreign);
  }
  if (HasPrefix(names, "blocks.0.self_attn.q.")) {
    return Recognised{ComponentKind::kTransformer, Naming::kUpstream};
  }
  if (HasPrefix(names, "blocks.0.attn1.to_q.") && HasPrefix(names, "condition_embedder.")) {
    return Recognised{ComponentKind::kTransformer, Naming::kDiffusers};
  }
  if (names.contains("decoder.head.0.gamma")) {
    return Recognised{ComponentKind::kVae, Naming::kUpstream};
  }
  if (names.contains("decoder.norm_out.gamma")) {
    return Recognised{ComponentKind::kVae, Naming::kDiffusers};
  }
  if (HasPrefix(names, "blocks.0.attn.q.") || HasPrefix(names, "enc.blk.0.attn_q.") ||
      HasPrefix(names, "encoder.block.0.layer.0.SelfAttention.q.")) {
    ForEachTensor(files, [](StoredTensor& tensor) { tensor.name = TextEncoderName(tensor.name); });
    return Recognised{ComponentKind::kTextEncoder, Naming::kUpstream};
  }
  return Unsupported(
      path, absl::StrCat(
                "is not a part of a Wan model",
                names.empty() ? ": it has no tensors"
                              : absl::StrCat("; its first tensor is ", Printable(*names.begin())),
                "; must be the file of a transformer, of a UMT5 text encoder or of a VAE"));
}

}  // namespace wan
