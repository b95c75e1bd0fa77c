// What `wanctl compare` says: tables and plots, JSON and CSV. All functions are pure.
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
  // "mkv" (lossless), "mp4", or empty for a file of the command line.
  std::string artifact;
};

struct ComparisonReport {
  ComparedVideo a;
  ComparedVideo b;
  VideoComparison videos;
  // A line for each thing that differs between the two jobs (client/wanctl/receipt_comparison.h);
  // nullopt if A or B is a file, of which nothing is known.
  std::optional<std::vector<std::string>> differences;
  // The file of WriteSideBySide and its gain; empty: none was written.
  std::string side_by_side;
  int gain = 0;
};

// Returns the document. Its root has figures, texts and charts; its only section lists the frames.
reports::Document ComparisonDocument(const ComparisonReport& report);

// Returns one JSON object without line breaks, with lowerCamelCase names and all digits.
std::string ComparisonJson(const ComparisonReport& report);

// Returns a line of titles and one for each frame: frame,psnr_db,ssim,ms_ssim.
std::string ComparisonCsv(const VideoComparison& comparison);

}  // namespace wan::client
