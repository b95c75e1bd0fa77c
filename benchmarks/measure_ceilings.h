// Measures the rates to which every row is compared: products and attention with a model's shapes,
// copies within device memory and to and from the host, each by the fastest known code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/ceilings.h"

namespace wan {

class Session;

// Shapes of the products and attention of one block.
struct BlockShape {
  std::string name;
  int64_t tokens = 0;
  int64_t dim = 0;
  int64_t ffn_dim = 0;
  int64_t heads = 0;
};

struct CeilingPlan {
  // The ceiling of products, or attention, is the rate over all shapes together.
  std::vector<BlockShape> shapes;
  // Precision of the shapes' products. Other precisions are measured only for the first shape's
  // widest product.
  std::string precision = "bf16";
  std::vector<std::string> further_precisions;
  double seconds = 1;  // seconds of back-to-back calls per rate
  int64_t copy_bytes = int64_t{1} << 32;
  int64_t host_copy_bytes = int64_t{1} << 30;
  bool prints = true;  // whether to add the rows to the session
};

// Returns shapes for the session's device: on a GPU bf16 with the published sizes of `models`
// ("ti2v-5b"); on a CPU fp32 with few tokens, so that a rate takes seconds. `tokens` above 0
// replaces the number of tokens.
absl::StatusOr<CeilingPlan> MakeCeilingPlan(const Session& session,
                                            const std::vector<std::string>& models, int64_t tokens);

struct MeasuredCeilings {
  Ceilings ceilings;
  std::vector<BenchRow> rows;
};

// Briefly takes about 20 GiB of a GPU. Returns errors of printing; LibTorch's exceptions pass
// through.
absl::StatusOr<MeasuredCeilings> MeasureCeilings(Session& session, const CeilingPlan& plan);

// Measures a GPU's main rates (products in every precision, attention, copies) in about six
// seconds, without rows.
Ceilings MeasureMainCeilings(Session& session);

}  // namespace wan
