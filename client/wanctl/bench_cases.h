// The cases of `wanctl bench`: requests with names, read from YAML.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// A further request of a case: upstream's settings, or one option changed.
struct BenchVariant {
  // "original", or the option's name.
  std::string name;
  wan::v1::GenerationRequest request;
  // Runs once, before the rest of the case and without a warm-up.
  bool cold = false;
};

struct BenchCase {
  std::string name;
  wan::v1::GenerationRequest request;
  // The file of the first frame; empty: none.
  std::string image_path;
  // The request of `--mode original` and `both`; the case's own request if it has no `original`.
  BenchVariant original;
  // Each entry of `options`.
  std::vector<BenchVariant> options;
};

// Reads
//
//   defaults: {model: ti2v-5b, seed: 42}           # for every case; optional
//   cases:
//     - name: preview
//       prompt: A red cat runs on the beach.
//       size: 1280x704
//       frames: 121
//       original: {vae_precision: fp32}             # optional
//       options: {"VAE in TF32": {vae_precision: tf32}}  # optional
//
// The other keys are those of wanctl's flags: negative_prompt, image, fps, steps, guidance, shift,
// solver, vae_precision, seed, and profile (true or false). `original` and each option may also
// have `warm_up: false`. A case without a seed has 42, so that its runs can be compared; a negative
// seed is an error for the same reason. INVALID_ARGUMENT names the case, the key, the value and
// what is allowed. Messages call the text `source`.
absl::StatusOr<std::vector<BenchCase>> ParseBenchCases(const std::string& yaml,
                                                       const std::string& source);

// bench_defaults.cc: the YAML of "demo" and "seeds"; null for another name.
const char* DefaultBenchCases(const std::string& name);

}  // namespace wan::client
