// Reads a LoRA file for a transformer: finds which tensors it changes, and by how much.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/lora.h"
#include "engine/api/model_file.h"
#include "engine/checkpoint/model_config.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// A matrix of a term: either one tensor, or the product of two factors.
struct LoraMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  // With a rank above 0 the matrix is up * down, with up [rows, rank] and down [rank, columns].
  // With rank 0 the matrix is `whole`, whose first dimension is the rows.
  int64_t rank = 0;
  StoredTensor up;
  StoredTensor down;
  StoredTensor whole;
};

// The formula for a term's change D from its matrices.
enum class LoraForm {
  kOne,        // the first matrix (LoRA, and differences)
  kHadamard,   // first times second, element by element (LoHa)
  kKronecker,  // the Kronecker product of first and second (LoKr)
};

// The vectors whose lengths DoRA sets.
enum class LoraMagnitude {
  kNone,       // no DoRA
  kOfRows,     // the length of each row
  kOfColumns,  // the length of the columns of each input, or of each input channel of a convolution
};

// A change of one tensor. The tensor W counts as a matrix [rows, columns]: rows is its first
// dimension, columns the product of its other dimensions. W becomes W + factor * D; with a
// magnitude m it becomes m * V / |V| with V = W + factor * D, where |V| are the lengths of V's rows
// or columns.
struct LoraTerm {
  std::string target;  // the tensor's canonical name, for example "blocks.0.self_attn.q.weight"
  int64_t rows = 0;
  int64_t columns = 1;
  LoraForm form = LoraForm::kOne;
  LoraMatrix first;   // has the target's size unless the form is kKronecker
  LoraMatrix second;  // not used by kOne
  LoraMagnitude magnitude = LoraMagnitude::kNone;
  StoredTensor lengths;  // m: one element for each row, or for each input channel
  double factor = 1;

  int64_t rank() const { return std::max(first.rank, second.rank); }
  // Returns whether D is a given difference, which alpha does not scale.
  bool IsDifference() const { return form == LoraForm::kOne && first.rank == 0; }
  // Returns all tensors that the term has.
  std::vector<const StoredTensor*> Tensors() const;
};

struct LoraFile {
  std::string path;                     // path of the safetensors file that was read
  std::vector<ModelFile> files;         // that file and, if it was read, adapter_config.json
  std::shared_ptr<const void> mapping;  // owns the memory of the terms' bytes
  const MappedFile* file = nullptr;     // the file that holds the bytes; null if they are a copy
  std::vector<LoraTerm> terms;          // sorted by target; there is at least one term
  // The tensors that were skipped because they belong to the image branch of Wan2.1's models,
  // sorted by name.
  std::vector<std::string> left_out;
  // The names of the file: the file name (or the folder's name, if the file name tells nothing),
  // and the titles in the metadata.
  std::vector<std::string> names;
  int64_t rank = 0;    // largest rank of any term
  uint64_t bytes = 0;  // bytes of all terms together
};

// Describes what a file changes; expert and path stay unset.
LoraPartDescription DescribeLora(const LoraFile& file);

// Reads a safetensors file, or a folder that PEFT wrote (adapter_model.safetensors with
// adapter_config.json). docs/use/lora.md describes the styles of keys and the scaling. Thread-safe.
//
// The call takes as long as reading the file from disk, because it checks that all values are
// finite.
//
// Every error names file and key. DATA_LOSS if the file is damaged, half of a pair is missing, one
// key has two spellings, a value is NaN or infinite, or settings contradict each other or the
// tensors (lora_alpha.h); INVALID_ARGUMENT if the LoRA is for another model (unknown keys, other
// dimensions); UNIMPLEMENTED for adapters other than LoRA, DoRA, LoHa and LoKr, and for dtypes
// other than F32, F16 and BF16.
absl::StatusOr<LoraFile> ReadLoraFile(const std::string& path, const TransformerConfig& config);

}  // namespace wan
