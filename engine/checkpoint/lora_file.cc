#include "engine/checkpoint/lora_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/file_problem.h"
#include "engine/checkpoint/lora_alpha.h"
#include "engine/checkpoint/lora_keys.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/finite.h"
#include "engine/formats/safetensors.h"

namespace wan {
namespace {

constexpr const char kPeftModel[] = "adapter_model.safetensors";
constexpr const char kPeftConfig[] = "adapter_config.json";

// The tensors that a file has for one module; each is null if the file lacks it.
struct ModuleParts {
  std::map<LoraPart, const StoredTensor*> parts;

  const StoredTensor* Find(LoraPart part) const {
    const auto found = parts.find(part);
    return found == parts.end() ? nullptr : found->second;
  }
};

bool IsComputable(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

template <typename T>
T LoadAs(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

double HalfToDouble(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const double fraction = (bits & 0x3FF) / 1024.0;
  if (exponent == 0x1F) return std::nan("");
  const double size =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (bits & 0x8000) != 0 ? -size : size;
}

// Returns a tensor's only element; nullopt if it has several elements, another dtype, or a value
// that is not finite. Errors are those of MappedFile::Read.
absl::StatusOr<std::optional<double>> ScalarOf(const MappedFile& file, const StoredTensor& tensor) {
  if (ElementCount(tensor.shape) != 1) return std::nullopt;
  const absl::StatusOr<std::vector<std::byte>> bytes = file.Copy(tensor.bytes);
  if (!bytes.ok()) return bytes.status();
  double value = 0;
  switch (tensor.dtype) {
    case DType::kFloat64:
      value = LoadAs<double>(*bytes);
      break;
    case DType::kFloat32:
      value = LoadAs<float>(*bytes);
      break;
    case DType::kFloat16:
      value = HalfToDouble(LoadAs<uint16_t>(*bytes));
      break;
    case DType::kBFloat16:
      value = std::bit_cast<float>(static_cast<uint32_t>(LoadAs<uint16_t>(*bytes)) << 16);
      break;
    case DType::kInt64:
      value = static_cast<double>(LoadAs<int64_t>(*bytes));
      break;
    case DType::kInt32:
      value = LoadAs<int32_t>(*bytes);
      break;
    default:
      return std::nullopt;
  }
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

// Returns the name of the Wan model that has hidden states of size `width`; empty if there is none.
std::string ModelOfWidth(int64_t width) {
  switch (width) {
    case 1536:
      return " (Wan2.1 1.3B)";
    case 3072:
      return " (TI2V-5B)";
    case 5120:
      return " (the 14B models)";
    default:
      return "";
  }
}

// Builds the terms of one file from its tensors, and collects the problems that it finds.
class TermBuilder {
 public:
  TermBuilder(const TensorFile& file, const TransformerConfig& config, const LoraAlpha& alpha)
      : file_(file), config_(config), alpha_(alpha), keys_(config) {}

  absl::StatusOr<LoraFile> Build() {
    for (const StoredTensor& tensor : file_.tensors) Sort(tensor);
    for (const auto& [module, parts] : modules_) AddModule(module, parts);
    if (problems_.empty()) CheckWhole();
    if (!problems_.empty()) return Summarise(problems_);
    std::sort(result_.left_out.begin(), result_.left_out.end());
    result_.path = file_.path;
    result_.mapping = file_.mapping;
    result_.file = file_.file;
    std::stable_sort(result_.terms.begin(), result_.terms.end(),
                     [](const LoraTerm& a, const LoraTerm& b) { return a.target < b.target; });
    return std::move(result_);
  }

 private:
  void Sort(const StoredTensor& tensor) {
    const absl::StatusOr<LoraKey> key = keys_.Read(tensor.name);
    if (!key.ok()) {
      problems_.push_back(absl::Status(
          key.status().code(), absl::StrCat(file_.path, ": tensor ", Printable(tensor.name), " ",
                                            key.status().message())));
      return;
    }
    if (key->part == LoraPart::kImageBranch) {
      result_.left_out.push_back(tensor.name);
      return;
    }
    if (key->part != LoraPart::kAlpha && !IsComputable(tensor.dtype)) {
      problems_.push_back(Unsupported(
          file_.path,
          absl::StrCat("tensor ", Printable(tensor.name), " has dtype ",
                       std::string(DTypeName(tensor.dtype)), ", expected F32, F16 or BF16")));
      return;
    }
    const auto [other, is_new] = modules_[key->module].parts.emplace(key->part, &tensor);
    if (!is_new) {
      problems_.push_back(Damaged(
          file_.path, absl::StrCat("tensors ", Printable(other->second->name), " and ",
                                   Printable(tensor.name), " are the same part of ", key->module)));
    }
  }

  // Runs the checks for which all tensors must be known.
  void CheckWhole() {
    if (result_.terms.empty()) {
      problems_.push_back(
          result_.left_out.empty()
              ? Damaged(file_.path, "does not hold a LoRA: it has no tensors")
              : absl::InvalidArgumentError(absl::StrCat(
                    file_.path,
                    ": changes nothing but the image branch of Wan2.1's image-to-video models, "
                    "which this model does not have")));
    }
    if (absl::Status status = alpha_.CheckPairs(pairs_); !status.ok()) {
      problems_.push_back(std::move(status));
    }
    for (const LoraTerm& term : result_.terms) {
      for (const StoredTensor* const tensor : {&term.up, &term.down, &term.difference}) {
        CheckFinite(*tensor);
      }
    }
  }

  // Reads with system calls, because access to the mapped file raises SIGBUS if somebody has
  // truncated it.
  void CheckFinite(const StoredTensor& tensor) {
    constexpr size_t kPiece = size_t{1} << 20;
    for (size_t done = 0; done < tensor.bytes.size();) {
      const std::span<const std::byte> piece =
          tensor.bytes.subspan(done, std::min(kPiece, tensor.bytes.size() - done));
      buffer_.resize(piece.size());
      if (absl::Status status = file_.file->Read(piece, buffer_.data()); !status.ok()) {
        problems_.push_back(std::move(status));
        return;
      }
      if (const std::optional<size_t> found = FirstNotFinite(buffer_, tensor.dtype)) {
        Wrong(tensor,
              absl::StrCat("has a value that is NaN or infinite, its element ",
                           done / DTypeSize(tensor.dtype) + *found, "; all values must be finite"));
        return;
      }
      done += piece.size();
    }
  }

  void AddModule(const std::string& module, const ModuleParts& parts) {
    const StoredTensor* const down = parts.Find(LoraPart::kDown);
    const StoredTensor* const up = parts.Find(LoraPart::kUp);
    const StoredTensor* const alpha = parts.Find(LoraPart::kAlpha);
    const StoredTensor* const up_bias = parts.Find(LoraPart::kUpBias);
    double factor = 1;
    if (down != nullptr && up != nullptr) {
      const std::optional<double> found = AddLowRank(module, *up, *down, alpha);
      if (!found.has_value()) return;
      factor = *found;
    } else if (const StoredTensor* const half = down != nullptr ? down : up; half != nullptr) {
      Wrong(*half, absl::StrCat("is half of a LoRA: ",
                                down == nullptr ? "its lora_A (lora_down)" : "its lora_B (lora_up)",
                                " is missing"));
      return;
    } else if (const StoredTensor* const lone = alpha != nullptr ? alpha : up_bias;
               lone != nullptr) {
      Wrong(*lone, "stands alone: both factors of its LoRA are missing");
      return;
    }
    if (up_bias != nullptr) AddDifference({module, LoraPart::kUpBias}, *up_bias, factor);
    for (const LoraPart part : {LoraPart::kDifference, LoraPart::kBiasDifference}) {
      if (const StoredTensor* const difference = parts.Find(part)) {
        AddDifference({module, part}, *difference, 1);
      }
    }
  }

  // Returns the factor of a term. If there is a problem, records it and returns nullopt.
  std::optional<double> AddLowRank(const std::string& module, const StoredTensor& up,
                                   const StoredTensor& down, const StoredTensor* alpha) {
    LoraTerm term;
    if (!SetTarget({module, LoraPart::kUp}, up, term)) return std::nullopt;
    if (down.shape.size() < 2 || up.shape.size() < 2 || down.shape[0] < 1) {
      Wrong(down, "is not a matrix with at least one row, or its other half is not");
      return std::nullopt;
    }
    term.rank = down.shape[0];
    const int64_t columns = ElementCount(down.shape).value_or(0) / term.rank;
    const int64_t rows = ElementCount(up.shape).value_or(0) / std::max<int64_t>(up.shape[1], 1);
    if (columns != term.columns) {
      OtherDimensions(down, absl::StrCat("[rank, ", term.columns, "]"), columns, term.columns);
      return std::nullopt;
    }
    if (up.shape[0] != term.rows || rows != term.rows) {
      OtherDimensions(up, absl::StrCat("[", term.rows, ", rank]"), up.shape[0], term.rows);
      return std::nullopt;
    }
    if (up.shape[1] != term.rank) {
      Wrong(up, absl::StrCat("has shape ", ShapeText(up.shape), ", but its other half ",
                             Printable(down.name), " has ", ShapeText(down.shape),
                             ": the ranks differ"));
      return std::nullopt;
    }
    // The pairs keep the module names of the file, because adapter_config.json uses these names.
    LoraPair& pair =
        pairs_.emplace_back(LoraPair{down.name.substr(0, down.name.find(".lora")), term.rank, {}});
    if (alpha != nullptr) {
      absl::StatusOr<std::optional<double>> stored = ScalarOf(*file_.file, *alpha);
      if (!stored.ok()) {
        problems_.push_back(stored.status());
        return std::nullopt;
      }
      pair.stored = *stored;
      if (!pair.stored.has_value()) {
        Wrong(*alpha, "is not a finite number");
        return std::nullopt;
      }
    }
    term.factor = alpha_.Factor(pair);
    if (!std::isfinite(term.factor)) {
      Wrong(down, "has a scaling factor that is not finite");
      return std::nullopt;
    }
    term.up = up;
    term.down = down;
    result_.rank = std::max(result_.rank, term.rank);
    result_.bytes += up.bytes.size() + down.bytes.size();
    result_.terms.push_back(std::move(term));
    return result_.terms.back().factor;
  }

  void AddDifference(const LoraKey& key, const StoredTensor& difference, double factor) {
    LoraTerm term;
    if (!SetTarget(key, difference, term)) return;
    if (ElementCount(difference.shape) != term.rows * term.columns) {
      OtherDimensions(difference, ShapeText(keys_.ShapeOf(term.target)),
                      difference.shape.empty() ? 1 : difference.shape.front(), term.rows);
      return;
    }
    term.difference = difference;
    term.factor = factor;
    result_.bytes += difference.bytes.size();
    result_.terms.push_back(std::move(term));
  }

  bool SetTarget(const LoraKey& key, const StoredTensor& tensor, LoraTerm& term) {
    term.target = keys_.TargetOf(key);
    if (term.target.empty()) {
      OfAnotherModel(tensor, absl::StrCat("changes the bias of ", key.module, ", which has none"));
      return false;
    }
    const std::vector<int64_t>& shape = keys_.ShapeOf(term.target);
    term.rows = shape.front();
    term.columns = *ElementCount(shape) / term.rows;
    return true;
  }

  void OtherDimensions(const StoredTensor& tensor, const std::string& expected, int64_t has,
                       int64_t wanted) {
    std::string text = absl::StrCat("has shape ", ShapeText(tensor.shape), ", expected ", expected);
    if (wanted == config_.dim) {
      absl::StrAppend(&text, ": it is for a model of width ", has, ModelOfWidth(has),
                      ", but this model has width ", wanted, ModelOfWidth(wanted));
    }
    OfAnotherModel(tensor, text);
  }

  void OfAnotherModel(const StoredTensor& tensor, const std::string& what) {
    problems_.push_back(absl::InvalidArgumentError(
        absl::StrCat(file_.path, ": tensor ", Printable(tensor.name), " ", what)));
  }

  void Wrong(const StoredTensor& tensor, const std::string& what) {
    problems_.push_back(
        Damaged(file_.path, absl::StrCat("tensor ", Printable(tensor.name), " ", what)));
  }

  const TensorFile& file_;
  const TransformerConfig& config_;
  const LoraAlpha& alpha_;
  const LoraKeyReader keys_;
  std::map<std::string, ModuleParts> modules_;
  std::vector<LoraPair> pairs_;
  std::vector<std::byte> buffer_;
  LoraFile result_;
  std::vector<absl::Status> problems_;
};

// Suggests to the user one of the LoRA files in the folder.
absl::Status NoPeftFolder(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".safetensors") found.push_back(entry->path().string());
  }
  std::sort(found.begin(), found.end());
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": is a folder without ", kPeftModel,
                   ", so PEFT did not write it; give the LoRA's file",
                   found.empty() ? "" : absl::StrCat(", for example ", found.front())));
}

}  // namespace

absl::StatusOr<LoraFile> ReadLoraFile(const std::string& path, const TransformerConfig& config) {
  std::error_code ignored;
  std::filesystem::path file_path = path;
  if (std::filesystem::is_directory(file_path, ignored)) {
    file_path /= kPeftModel;
    if (!IsGiven(file_path.string())) return NoPeftFolder(path);
  }
  const absl::StatusOr<TensorFile> file = ReadSafetensors(file_path.string());
  if (!file.ok()) return file.status();
  // adapter_config.json describes this file only if the file has the name that PEFT gives it.
  const std::filesystem::path config_path = file_path.parent_path() / kPeftConfig;
  const bool has_config = file_path.filename() == kPeftModel && IsGiven(config_path.string());
  std::vector<ModelFile> files = {
      {file_path.filename().string(), file->path, file->file->version()}};
  const absl::StatusOr<FileVersion> config_version = FileVersion::Of(config_path.string());
  if (has_config && config_version.ok()) {
    files.push_back({config_path.filename().string(), config_path.string(), *config_version});
  }
  const absl::StatusOr<LoraAlpha> alpha =
      LoraAlpha::Read(*file, has_config ? config_path.string() : "");
  if (!alpha.ok()) return alpha.status();
  absl::StatusOr<LoraFile> lora = TermBuilder(*file, config, *alpha).Build();
  if (lora.ok()) lora->files = std::move(files);
  return lora;
}

}  // namespace wan
