// Parses video sizes for the commands of wan_bench.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace wan {

// The size of a video that a command measures.
struct BenchShape {
  int64_t width = 1280;
  int64_t height = 704;
  int64_t frames = 121;

  std::string Name() const;  // "1280x704x121"
};

// Parses text such as "1280x704x121"; INVALID_ARGUMENT if the text has another form.
absl::StatusOr<BenchShape> ParseShape(const std::string& text);

// Returns INVALID_ARGUMENT, with the nearest allowed values, unless the sides are multiples of
// `side_step` and the number of frames is a multiple of `frame_step` plus 1. If the values were
// rounded down instead, a smaller video would be measured under the same name.
absl::Status CheckShape(const BenchShape& shape, int64_t side_step, int64_t frame_step);

}  // namespace wan
