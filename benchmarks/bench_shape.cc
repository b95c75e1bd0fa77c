#include "benchmarks/bench_shape.h"

#include <cstdio>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/planning/size_rules.h"

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

absl::Status CheckShape(const BenchShape& shape, int64_t side_step, int64_t frame_step) {
  constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
  const ValueGrid sides{side_step, kAny, side_step};
  const ValueGrid lengths{1, kAny, frame_step};
  const std::string multiple = absl::StrCat("a multiple of ", side_step);
  const auto check = [&](const char* part, int64_t value, const ValueGrid& grid,
                         const std::string& rule) {
    if (grid.Contains(value)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("--shape is ", shape.Name(), "; ", part,
                                                   " must be ", rule, ", for example ",
                                                   NearestIn(grid, value)));
  };
  absl::Status status = check("the width", shape.width, sides, multiple);
  if (status.ok()) status = check("the height", shape.height, sides, multiple);
  if (!status.ok()) return status;
  return check("the number of frames", shape.frames, lengths, absl::StrCat(frame_step, "n+1"));
}

}  // namespace wan
