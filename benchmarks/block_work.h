// The operators of one transformer block in the order in which they run, with what each has to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/bench_row.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

struct BlockOperator {
  std::string name;
  // The operator's name in a trace (op_trace.h), without shapes.
  std::string traced_as;
  Work work;
  bool is_product = false;  // a matrix product, whose ceiling is that of products
};

// Of WanTransformer's block (engine/models/wan/transformer.cc) for one video of `tokens` tokens. It
// begins with the product for queries, keys and values, and ends with the norm for the next block.
std::vector<BlockOperator> BlockOperators(const TransformerConfig& config, int64_t tokens,
                                          const std::string& precision);

}  // namespace wan
