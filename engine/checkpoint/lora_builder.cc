#include "engine/checkpoint/lora_builder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/lora_keys.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/finite.h"
#include "engine/formats/scalar_tensor.h"

namespace wan {
namespace {

// The tensors that a file has for one module; each is null if the file lacks it.
struct ModuleParts {
  std::map<LoraPart, const StoredTensor*> parts;

  const StoredTensor* Find(LoraPart part) const {
    const auto found = parts.find(part);
    return found == parts.end() ? nullptr : found->second;
  }
  // Returns the tensor of the first part in `wanted` that the module has, or null.
  const StoredTensor* FindAny(std::initializer_list<LoraPart> wanted) const {
    for (const LoraPart part : wanted) {
      if (const StoredTensor* const found = Find(part)) return found;
    }
    return nullptr;
  }
};

// The suffixes of the two factors of a product, with the names that messages give them.
struct ProductParts {
  LoraPart up;
  LoraPart down;
  const char* kind;
  const char* up_name;
  const char* down_name;
};
constexpr ProductParts kLowRankParts = {LoraPart::kUp, LoraPart::kDown, "LoRA", "lora_B (lora_up)",
                                        "lora_A (lora_down)"};
constexpr ProductParts kFirstParts = {LoraPart::kFirstUp, LoraPart::kFirstDown, "LoHa", "hada_w1_a",
                                      "hada_w1_b"};
constexpr ProductParts kSecondParts = {LoraPart::kSecondUp, LoraPart::kSecondDown, "LoHa",
                                       "hada_w2_a", "hada_w2_b"};
constexpr ProductParts kLeftParts = {LoraPart::kLeftUp, LoraPart::kLeftDown, "LoKr", "lokr_w1_a",
                                     "lokr_w1_b"};
constexpr ProductParts kRightParts = {LoraPart::kRightUp, LoraPart::kRightDown, "LoKr", "lokr_w2_a",
                                      "lokr_w2_b"};

bool IsComputable(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
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
    const bool has_lengths =
        std::any_of(result_.terms.begin(), result_.terms.end(),
                    [](const LoraTerm& term) { return term.magnitude != LoraMagnitude::kNone; });
    if (!alpha_.dora_setting().empty() && !has_lengths) {
      problems_.push_back(
          Damaged(file_.path, absl::StrCat(alpha_.dora_setting(),
                                           " is true, but the file has no lora_magnitude_vector")));
    }
    for (const LoraTerm& term : result_.terms) {
      for (const StoredTensor* const tensor : term.Tensors()) CheckFinite(*tensor);
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
    using enum LoraPart;
    const StoredTensor* const one = parts.FindAny({kDown, kUp});
    const StoredTensor* const hadamard =
        parts.FindAny({kFirstUp, kFirstDown, kSecondUp, kSecondDown});
    const StoredTensor* const kronecker = parts.FindAny(
        {LoraPart::kLeft, kLeftUp, kLeftDown, LoraPart::kRight, kRightUp, kRightDown});
    double factor = 1;
    if ((one != nullptr) + (hadamard != nullptr) + (kronecker != nullptr) > 1) {
      const StoredTensor& other = kronecker != nullptr ? *kronecker : *hadamard;
      Wrong(other, "belongs to a module that has parts of two kinds of adapters; must have one");
      return;
    }
    if (one != nullptr || hadamard != nullptr || kronecker != nullptr) {
      const LoraForm form = one != nullptr        ? LoraForm::kOne
                            : hadamard != nullptr ? LoraForm::kHadamard
                                                  : LoraForm::kKronecker;
      const std::optional<double> found = AddAdapter(module, parts, form);
      if (!found.has_value()) return;
      factor = *found;
    } else if (const StoredTensor* const lone = parts.FindAny({kAlpha, kUpBias, kMagnitude})) {
      Wrong(*lone, "stands alone: the matrices to which it belongs are missing");
      return;
    }
    if (const StoredTensor* const bias = parts.Find(kUpBias)) {
      AddDifference({module, kUpBias}, *bias, factor);
    }
    for (const LoraPart part : {kDifference, kBiasDifference}) {
      if (const StoredTensor* const difference = parts.Find(part)) {
        AddDifference({module, part}, *difference, 1);
      }
    }
  }

  // Returns the factor of the module's term. If there is a problem, records it and returns nullopt.
  std::optional<double> AddAdapter(const std::string& module, const ModuleParts& parts,
                                   LoraForm form) {
    LoraTerm term;
    term.form = form;
    if (!SetTarget({module, LoraPart::kUp}, *parts.parts.begin()->second, term)) {
      return std::nullopt;
    }
    if (!ReadMatrices(parts, term) || !ReadLengths(parts, term)) return std::nullopt;
    const std::optional<double> factor =
        FactorOf(*term.Tensors().front(), parts.Find(LoraPart::kAlpha), term.rank());
    if (!factor.has_value()) return std::nullopt;
    term.factor = *factor;
    Keep(std::move(term));
    return factor;
  }

  bool ReadMatrices(const ModuleParts& parts, LoraTerm& term) {
    switch (term.form) {
      case LoraForm::kOne:
        return ReadFactor(parts, kLowRankParts, term, term.first);
      case LoraForm::kHadamard:
        return ReadFactor(parts, kFirstParts, term, term.first) &&
               ReadFactor(parts, kSecondParts, term, term.second) && HaveOneRank(term);
      case LoraForm::kKronecker:
        return ReadSide(parts, LoraPart::kLeft, kLeftParts, term.first) &&
               ReadSide(parts, LoraPart::kRight, kRightParts, term.second) && MakeTarget(term) &&
               HaveOneRank(term);
    }
    return false;
  }

  // Reads a product that has the size of the term's target.
  bool ReadFactor(const ModuleParts& parts, const ProductParts& names, const LoraTerm& term,
                  LoraMatrix& matrix) {
    if (!ReadProduct(parts, names, matrix)) return false;
    if (matrix.columns != term.columns) {
      OtherDimensions(matrix.down, absl::StrCat("[rank, ", term.columns, "]"), matrix.columns,
                      term.columns);
      return false;
    }
    if (matrix.rows != term.rows) {
      OtherDimensions(matrix.up, absl::StrCat("[", term.rows, ", rank]"), matrix.rows, term.rows);
      return false;
    }
    return HasOneRank(matrix);
  }

  // Reads both factors of a product, without comparing their ranks.
  bool ReadProduct(const ModuleParts& parts, const ProductParts& names, LoraMatrix& matrix) {
    const StoredTensor* const up = parts.Find(names.up);
    const StoredTensor* const down = parts.Find(names.down);
    if (up == nullptr || down == nullptr) {
      const StoredTensor* const half = up != nullptr ? up : down;
      const bool lacks_both = half == nullptr;
      Wrong(lacks_both ? *parts.parts.begin()->second : *half,
            absl::StrCat(lacks_both ? "is a part of a " : "is half of a ", names.kind, ": its ",
                         down == nullptr ? names.down_name : names.up_name, " is missing"));
      return false;
    }
    if (down->shape.size() < 2 || up->shape.size() < 2 || down->shape[0] < 1) {
      Wrong(*down, "is not a matrix with at least one row, or its other half is not");
      return false;
    }
    matrix.rank = down->shape[0];
    matrix.rows = up->shape[0];
    matrix.columns = ElementCount(down->shape).value_or(0) / matrix.rank;
    matrix.up = *up;
    matrix.down = *down;
    return true;
  }

  bool HasOneRank(const LoraMatrix& matrix) {
    const StoredTensor& up = matrix.up;
    // A convolution's second factor has the shape [rows, rank, 1, 1, 1].
    if (up.shape[1] == matrix.rank &&
        ElementCount(up.shape).value_or(0) == matrix.rows * matrix.rank) {
      return true;
    }
    Wrong(up, absl::StrCat("has shape ", ShapeText(up.shape), ", but its other half ",
                           Printable(matrix.down.name), " has ", ShapeText(matrix.down.shape),
                           ": the ranks differ"));
    return false;
  }

  // A product has one rank, by which alpha is divided.
  bool HaveOneRank(const LoraTerm& term) {
    const int64_t first = term.first.rank;
    const int64_t second = term.second.rank;
    if (first == second || first == 0 || second == 0) return true;
    Wrong(term.second.down, absl::StrCat("has rank ", second, ", but ",
                                         Printable(term.first.down.name), " has rank ", first));
    return false;
  }

  // Reads a side of a Kronecker product.
  bool ReadSide(const ModuleParts& parts, LoraPart whole, const ProductParts& names,
                LoraMatrix& matrix) {
    const StoredTensor* const found = parts.Find(whole);
    const StoredTensor* const factor = parts.FindAny({names.up, names.down});
    if (found == nullptr) return ReadProduct(parts, names, matrix) && HasOneRank(matrix);
    if (factor != nullptr) {
      Wrong(*factor,
            absl::StrCat("is a factor of ", Printable(found->name), ", which is there as well"));
      return false;
    }
    if (found->shape.size() < 2 || ElementCount(found->shape).value_or(0) < 1) {
      Wrong(*found, "is not a matrix with at least one row and one column");
      return false;
    }
    matrix.rows = found->shape[0];
    matrix.columns = ElementCount(found->shape).value_or(0) / matrix.rows;
    matrix.whole = *found;
    return true;
  }

  // Returns whether the sides of a Kronecker product make a matrix of the target's size.
  bool MakeTarget(const LoraTerm& term) {
    const auto makes = [](int64_t first, int64_t second, int64_t size) {
      return first > 0 && size % first == 0 && second == size / first;
    };
    if (makes(term.first.rows, term.second.rows, term.rows) &&
        makes(term.first.columns, term.second.columns, term.columns)) {
      return true;
    }
    OfAnotherModel(
        *term.Tensors().front(),
        absl::StrCat("makes with the other side of its LoKr the product of [", term.first.rows,
                     ", ", term.first.columns, "] and [", term.second.rows, ", ",
                     term.second.columns, "], expected [", term.rows, ", ", term.columns, "]"));
    return false;
  }

  bool ReadLengths(const ModuleParts& parts, LoraTerm& term) {
    const StoredTensor* const lengths = parts.Find(LoraPart::kMagnitude);
    if (lengths == nullptr) return true;
    const int64_t count = ElementCount(lengths->shape).value_or(0);
    const std::vector<int64_t>& target = keys_.ShapeOf(term.target);
    const int64_t inputs = target.size() < 2 ? 1 : target[1];
    if (!lengths->shape.empty() && lengths->shape[0] == term.rows && count == term.rows) {
      term.magnitude = LoraMagnitude::kOfRows;
    } else if (lengths->shape.size() >= 2 && lengths->shape[1] == inputs && count == inputs) {
      term.magnitude = LoraMagnitude::kOfColumns;
    } else {
      OtherDimensions(*lengths,
                      absl::StrCat("[", term.rows, "], [", term.rows, ", 1] or [1, ", inputs, "]"),
                      count, term.rows);
      return false;
    }
    term.lengths = *lengths;
    return true;
  }

  // Returns the factor of a term that has the tensor `part`. If there is a problem, records it and
  // returns nullopt.
  std::optional<double> FactorOf(const StoredTensor& part, const StoredTensor* alpha,
                                 int64_t rank) {
    // The pairs keep the module names of the file, because adapter_config.json uses these names.
    const std::string module(LoraKeyReader::SpelledModule(part.name));
    // If there is no rank, LyCORIS and ai-toolkit store an arbitrary alpha and never use it.
    if (rank == 0) return Finite(alpha_.FactorWithoutRank(module), part);
    LoraPair& pair = pairs_.emplace_back(LoraPair{module, rank, {}});
    if (alpha != nullptr) {
      absl::StatusOr<std::optional<double>> stored = ReadScalar(*file_.file, *alpha);
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
    return Finite(alpha_.Factor(pair), part);
  }

  // LoRAs are merged in fp32.
  std::optional<double> Finite(double factor, const StoredTensor& part) {
    if (std::abs(factor) <= std::numeric_limits<float>::max()) return factor;  // false for NaN
    Wrong(part, "has a scaling factor that is not finite in fp32");
    return std::nullopt;
  }

  void AddDifference(const LoraKey& key, const StoredTensor& difference, double factor) {
    LoraTerm term;
    if (!SetTarget(key, difference, term)) return;
    if (ElementCount(difference.shape) != term.rows * term.columns) {
      OtherDimensions(difference, ShapeText(keys_.ShapeOf(term.target)),
                      difference.shape.empty() ? 1 : difference.shape.front(), term.rows);
      return;
    }
    term.first = {.rows = term.rows, .columns = term.columns, .whole = difference};
    term.factor = factor;
    Keep(std::move(term));
  }

  void Keep(LoraTerm term) {
    result_.rank = std::max(result_.rank, term.rank());
    for (const StoredTensor* const tensor : term.Tensors()) result_.bytes += tensor->bytes.size();
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

}  // namespace

absl::StatusOr<LoraFile> BuildLora(const TensorFile& file, const TransformerConfig& config,
                                   const LoraAlpha& alpha) {
  return TermBuilder(file, config, alpha).Build();
}

}  // namespace wan
