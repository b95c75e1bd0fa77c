#include "benchmarks/bench_shape.h"

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace wan {

std::string BenchShape::Name() const { return absl::StrCat(width, "x", height, "x", frames); }

absl::StatusOr<BenchShape> ParseShape(const std::string& text) {
  BenchShape shape;
  char rest = 0;
  const int read =
      std::sscanf(text.c_str(), "%ldx%ldx%ld%c", &shape.width, &shape.height, &shape.frames, &rest);
  if (read == 3 && shape.width > 0 && shape.height > 0 && shape.frames > 0) return shape;
  return absl::InvalidArgumentError(
      absl::StrCat("--shape is '", text, "', expected WIDTHxHEIGHTxFRAMES"));
}

}  // namespace wan
