// The whole runs of tests/golden, from the request to the files, for tests on any device.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "engine/api/generation.h"

namespace wan {

struct GoldenPipelineCase {
  std::string id;             // "pipeline/ti2v-t2v"
  std::string file;           // of its tensors, for LoadGolden
  std::string checkpoint;     // "ti2v-5b"
  GenerationRequest request;  // for a model with the name "m"
  VideoShape shape;           // of upstream's video
  std::vector<double> timesteps;
  std::vector<std::string> experts;  // by step: "only", "high", "low"
};

// Throws std::runtime_error if there is no such case.
GoldenPipelineCase LoadGoldenPipelineCase(const std::string& id);

// All cases, in the order of cases.json.
std::vector<std::string> GoldenPipelineIds();

// Runs a case on `device` with upstream's noise (a GPU's generator draws other numbers than the
// CPU's, with which upstream's tensors were made) and expects every tensor on the way, the previews
// and the files to agree with upstream's. Prints one line with the largest errors.
//
// In fp32 the bounds are those of the golden data's README. In bf16 they follow from upstream's own
// bf16 error of one forward; golden_pipeline.cc says how.
void ExpectGoldenPipeline(const std::string& id, at::Device device, at::ScalarType dtype);

}  // namespace wan
