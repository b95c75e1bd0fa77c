// The two kinds of WeightSource: over mapped files, and synthetic.
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

// The tensors of `files` under their canonical names. Appends a problem for every tensor of `specs`
// that is missing, has another shape or no floating-point dtype that we compute with (F32, F16,
// BF16), and for every tensor besides. `where` is the component's file for messages.
std::unique_ptr<WeightSource> MakeFileWeights(const TensorFiles& files,
                                              const std::vector<TensorSpec>& specs, Naming naming,
                                              const std::string& where,
                                              std::vector<absl::Status>& problems);

// Tensors without bytes, all of one dtype; `where` stands for their file.
std::unique_ptr<WeightSource> MakeSyntheticWeights(const std::vector<TensorSpec>& specs,
                                                   DType dtype, const std::string& where,
                                                   uint64_t seed = 0);

}  // namespace wan
