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

// Returns the tensors of `files` under their canonical names. Appends a problem for every tensor of
// `specs` that is missing, has another shape or a dtype other than F32, F16 and BF16, and for every
// tensor that is not in `specs`. Messages name `where`, the component's file.
std::unique_ptr<WeightSource> MakeFileWeights(const TensorFiles& files,
                                              const std::vector<TensorSpec>& specs, Naming naming,
                                              const std::string& where,
                                              std::vector<absl::Status>& problems);

// Returns tensors without bytes, all of one dtype; `where` stands for their file.
std::unique_ptr<WeightSource> MakeSyntheticWeights(const std::vector<TensorSpec>& specs,
                                                   DType dtype, const std::string& where,
                                                   uint64_t seed = 0);

}  // namespace wan
