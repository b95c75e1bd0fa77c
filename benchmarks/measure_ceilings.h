// Measures the rates to which every row is compared: products and attention at a model's shapes,
// copies within the device's memory and to and from the host, each by the fastest known code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/ceilings.h"

namespace wan {

class Session;

// The shapes of one block's products and attention.
struct BlockShape {
  std::string name;
  int64_t tokens = 0;
  int64_t dim = 0;
  int64_t ffn_dim = 0;
  int64_t heads = 0;
};

struct CeilingPlan {
  // A ceiling is the rate of a forward's products, or attentions, of all shapes together.
  std::vector<BlockShape> shapes;
  // Precision of the shapes' products; other precisions are measured for the first shape's widest
  // product only.
  std::string precision = "bf16";
  std::vector<std::string> further_precisions;
  double seconds = 1;  // seconds of calls back to back, for each rate
  int64_t copy_bytes = int64_t{1} << 32;
  int64_t host_copy_bytes = int64_t{1} << 30;
  bool prints = true;  // adds the rows to the session
};

// Returns shapes for the session's device: on a GPU bf16 at the published sizes of `models`
// ("ti2v-5b"), on a CPU fp32 with few tokens, so that a rate takes seconds. `tokens` above 0
// replaces theirs.
absl::StatusOr<CeilingPlan> MakeCeilingPlan(const Session& session,
                                            const std::vector<std::string>& models, int64_t tokens);

struct MeasuredCeilings {
  Ceilings ceilings;
  std::vector<BenchRow> rows;
};

// Takes about 20 GiB of a GPU for a moment. Errors are those of printing; LibTorch throws its own.
absl::StatusOr<MeasuredCeilings> MeasureCeilings(Session& session, const CeilingPlan& plan);

// Measures a GPU's main rates in about six seconds, without rows: products in every precision,
// attention, copies.
Ceilings MeasureMainCeilings(Session& session);

}  // namespace wan
