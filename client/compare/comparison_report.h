// The report of `wanctl compare` as tables and plots, JSON and CSV. All functions are pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/compare/video_comparison.h"
#include "client/reports/document.h"

namespace wan::client {

// One of the two videos, A or B.
struct ComparedVideo {
  // "jobs/ID", or the path of a file.
  std::string name;
  // The kind of the job's artifact, "mkv" (lossless) or "mp4"; empty for a file of the command
  // line.
  std::string artifact;
};

struct ComparisonReport {
  ComparedVideo a;
  ComparedVideo b;
  VideoComparison videos;
  // One line for each difference between the two jobs (client/wanctl/receipt_comparison.h); nullopt
  // if A or B is a file, which has no receipt.
  std::optional<std::vector<std::string>> differences;
  // The file that WriteSideBySide has written, and its gain; empty: no file was written.
  std::string side_by_side;
  int gain = 0;
};

// Returns the comparison as a document for client/reports/render.h. The root section has figures,
// texts and charts; its only child lists the frames.
reports::Document ComparisonDocument(const ComparisonReport& report);

// Returns one JSON object without line breaks, with lowerCamelCase names and all digits.
std::string ComparisonJson(const ComparisonReport& report);

// Returns a line of titles and a line for each frame: frame,psnr_db,ssim,ms_ssim.
std::string ComparisonCsv(const VideoComparison& comparison);

}  // namespace wan::client
