// How much work a kind of operator is.
#pragma once

#include <string_view>

namespace wan {

struct OperatorWork {
  // "projections", "self_attention", "cross_attention", "feed_forward" or "elementwise"; static.
  std::string_view name;
  // Floating-point operations; a multiplication with an addition counts as two. 0 for kinds whose
  // operations are not counted because they are bound by memory.
  double flops = 0;
  double bytes = 0;  // what has to be read and written at least
};

}  // namespace wan
