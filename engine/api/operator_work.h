// Work and measured times of a transformer block's operators.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan {

// All operators of one class in a block.
struct OperatorWork {
  // "projections", "self_attention", "cross_attention", "feed_forward" or "elementwise"; static.
  std::string_view name;
  // Floating-point operations, with a multiply-add counted as two. 0 for classes that are bound by
  // memory.
  double flops = 0;
  double bytes = 0;  // fewest bytes that must be read and written
};

// One operator of a block. Operations and bytes are counted as above; both are 0 for a wait.
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
  std::string part;                      // name of the forward's SpanPart
  int block = 0;                         // from 0
  int texts = 0;                         // texts in the forward, which the operators' work includes
  std::vector<TimedOperator> operators;  // in order of execution, without gaps
};

}  // namespace wan
