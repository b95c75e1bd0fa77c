// Work and measured times of the operators in a transformer block.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan {

// The work of all operators of one class in a block.
struct OperatorWork {
  // "projections", "self_attention", "cross_attention", "feed_forward" or "elementwise"; points to
  // static memory
  std::string_view name;
  // Floating-point operations; a multiplication with an addition counts as two. 0 for classes whose
  // speed memory limits.
  double flops = 0;
  double bytes = 0;  // the fewest bytes that must be read and written
};

// One operator of a block. Operations and bytes are counted as in OperatorWork; both are 0 for a
// wait.
struct BlockOperator {
  std::string_view name;            // static memory; the proto's BlockOperator.name lists all names
  std::string_view operator_class;  // static memory; an OperatorWork::name, or "weights"
  double flops = 0;
  double bytes = 0;
};

struct TimedOperator {
  BlockOperator work;
  double seconds = 0;
};

// The measured times of one block in one forward of a job.
struct BlockProfile {
  std::string part;  // name of the forward's SpanPart
  int block = 0;     // index of the block, from 0
  int texts = 0;     // number of texts in the forward; the operators' work is for all of them
  std::vector<TimedOperator> operators;  // in the order in which they ran, without gaps
};

}  // namespace wan
