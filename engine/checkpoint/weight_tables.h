// Makes the two kinds of WeightSource: one over mapped files, and a synthetic one.
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

// Makes a source of the tensors of `files`, under their canonical names. Appends a problem for
// every tensor of `specs` that is missing or has a wrong shape or a dtype other than F32, F16 and
// BF16, and for every tensor that is not in `specs`. Messages call the component's file `where`.
std::unique_ptr<WeightSource> MakeFileWeights(const TensorFiles& files,
                                              const std::vector<TensorSpec>& specs, Naming naming,
                                              const std::string& where,
                                              std::vector<absl::Status>& problems);

// Makes a synthetic source of tensors of one dtype; `where` stands for their file.
std::unique_ptr<WeightSource> MakeSyntheticWeights(const std::vector<TensorSpec>& specs,
                                                   DType dtype, const std::string& where,
                                                   uint64_t seed = 0);

}  // namespace wan
