// Shows several runs of the same scenes as the columns of one table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace wan::demo {

struct Column {
  std::string title;
  // What `demo_evaluate run` has written. A clip may have in addition "psnr": how near its video is
  // to that of the first column, in dB.
  nlohmann::ordered_json report;
};

// Returns a Markdown table with a row for each measure of each mode: how many videos there are;
// which share of the objects have the right colour, motion and shape; the mean over objects of the
// median overlap with the ideal outline; mean and worst of the first frames' PSNR and of "psnr". A
// measure that no column has is left out. INVALID_ARGUMENT if a report is of other scenes than the
// first one, or is not a report.
absl::StatusOr<std::string> ColumnsTable(const std::vector<Column>& columns);

}  // namespace wan::demo
