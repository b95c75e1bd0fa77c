// The transformer's cases of tests/golden.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace wan {

struct GoldenDitCase {
  std::string id;          // "dit/ti2v-5b_00"
  std::string checkpoint;  // "ti2v-5b"
  int expert = 0;
  // Relative error of upstream's own bf16 forward, from the table in the README.
  double bf16_error = 0;

  at::Tensor latents;  // [B, in_channels, F, H, W], the image condition included
  at::Tensor timestep;
  std::vector<at::Tensor> contexts;
  at::Tensor output;
};

// All of them, in the order of cases.json. Throws if the data is not as expected.
std::vector<GoldenDitCase> LoadGoldenDitCases();

// How much of upstream's bf16 error is allowed: a machine sums in an order of its own.
inline constexpr double kBf16Slack = 1.2;

// A golden checkpoint, for example "ti2v-5b/original"; opened once, and never closed. Throws if it
// does not open.
const Checkpoint& GoldenCheckpoint(const std::string& layout);

}  // namespace wan
