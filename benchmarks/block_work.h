// The operators of one transformer block by their names in a trace, with the work of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/bench_row.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

struct TracedOperator {
  std::string name;
  // The operator's name in a trace (op_trace.h), without shapes.
  std::string traced_as;
  Work work;
  bool is_product = false;  // whether it is a matrix product, bounded by the ceiling of products
};

// The BlockOperators of transformer_cost.h for one video of `tokens` tokens, in their order,
// without the wait for weights.
std::vector<TracedOperator> TracedOperators(const TransformerConfig& config, int64_t tokens,
                                            const std::string& precision);

}  // namespace wan
