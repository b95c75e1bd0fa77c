// Parses the cases of `wanctl bench`: named requests in YAML.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "wan/v1/generation.pb.h"

namespace wan::client {

// Another request of a case: with the settings of Wan's generate.py, or with one option changed.
struct BenchVariant {
  // "original", or the name of the option.
  std::string name;
  wan::v1::GenerationRequest request;
  // Whether the request runs before the rest of the case and without warm-ups; the model is loaded
  // again between its runs.
  bool cold = false;
};

struct BenchCase {
  std::string name;
  wan::v1::GenerationRequest request;
  // The file of the first frame; empty: the request has no image.
  std::string image_path;
  // The request for `--mode original` and `both`; the case's own request if the case has no
  // `original`.
  BenchVariant original;
  // The requests under the key `options` of the case.
  std::vector<BenchVariant> options;
};

// Parses the text of a file of cases:
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
// Other keys have the names of wanctl's flags: negative_prompt, image, fps, steps, guidance, shift,
// solver, vae_precision, seed, and profile (true or false). `original` and each option may also
// have `warm_up: false`. The default seed is 42 and a negative seed is an error, so that runs can
// be compared. Fails with INVALID_ARGUMENT, which names the case, the key, the value and what is
// allowed. Messages call the text `source`.
absl::StatusOr<std::vector<BenchCase>> ParseBenchCases(const std::string& yaml,
                                                       const std::string& source);

// Returns the YAML of "demo" or "seeds" (bench_defaults.cc); null for other names.
const char* DefaultBenchCases(const std::string& name);

}  // namespace wan::client
