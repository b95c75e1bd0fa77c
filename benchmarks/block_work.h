// The operators of a transformer block: their names in a trace, and their work.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/bench_row.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

struct TracedOperator {
  std::string name;
  // The operator's name in a trace (op_trace.h), without the shapes.
  std::string traced_as;
  Work work;
  bool is_product = false;  // true: the ceiling of products applies
};

// Returns the BlockOperators of transformer_cost.h for one video of `tokens` tokens, in order,
// without the wait for weights.
std::vector<TracedOperator> TracedOperators(const TransformerConfig& config, int64_t tokens,
                                            const std::string& precision);

}  // namespace wan
