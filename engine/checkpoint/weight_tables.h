// Makes the two kinds of WeightSource: one for mapped files, and one for synthetic models.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/expected_tensors.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/formats/tensor_file.h"

namespace wan {

enum class Naming { kUpstream, kDiffusers };

// Makes a source for the tensors of `files`, under their canonical names. Reading converts two
// kinds of tensors to BF16: blocks (GGUF), and codes of 8 bits with their scales
// (scaled_weights.h). Appends a problem for each tensor of `specs` that is missing, has a wrong
// shape, or has a dtype that is neither F32, F16 or BF16 nor a code. Also appends a problem for
// each tensor of the files that neither `specs` lists nor a matrix of codes needs. Messages call
// the component's file `where`.
std::unique_ptr<WeightSource> MakeFileWeights(const TensorFiles& files,
                                              const std::vector<TensorSpec>& specs, Naming naming,
                                              const std::string& where,
                                              std::vector<absl::Status>& problems);

// Makes a source with the tensors of `first` and `second`, whose names must differ.
std::unique_ptr<WeightSource> JoinWeights(std::unique_ptr<WeightSource> first,
                                          std::unique_ptr<WeightSource> second);

// Makes a synthetic source whose tensors have one dtype; in messages, `where` stands for their
// file.
std::unique_ptr<WeightSource> MakeSyntheticWeights(const std::vector<TensorSpec>& specs,
                                                   DType dtype, const std::string& where,
                                                   uint64_t seed = 0);

}  // namespace wan
