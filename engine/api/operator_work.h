// The work of a transformer block's operators, and their measured times.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan {

// All operators of one class in a block.
struct OperatorWork {
  // "projections", "self_attention", "cross_attention", "feed_forward" or "elementwise"; static.
  std::string_view name;
  // Floating-point operations; a multiplication with an addition counts as two. 0 for classes whose
  // operations are not counted because they are bound by memory.
  double flops = 0;
  double bytes = 0;  // least bytes that must be read and written
};

// One operator of a block. FLOPs and bytes as above; both are 0 for a wait.
struct BlockOperator {
  std::string_view name;            // static; BlockOperator.name of the contract lists the names
  std::string_view operator_class;  // OperatorWork::name, or "weights"; static
  double flops = 0;
  double bytes = 0;
};

struct TimedOperator {
  BlockOperator work;
  double seconds = 0;
};

// The measured times of one block in one forward of a job.
struct BlockProfile {
  std::string part;                      // the name of the forward's SpanPart
  int block = 0;                         // from 0
  int texts = 0;                         // of the forward, which the operators' work counts
  std::vector<TimedOperator> operators;  // in the order in which they ran, without gaps
};

}  // namespace wan
