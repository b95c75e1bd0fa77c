#include "client/reports/published.h"

#include <algorithm>
#include <string_view>

namespace wan::client::reports {
namespace {

struct Published {
  std::string_view name;
  int width;
  int height;
  int frames;
  int steps;
  int transformers;  // number of the model's transformers
  double seconds;
};

// The first ten are "Total Duration" of two reports with the title "Wan2.2 Benchmark Report", made
// with generate.py, which moved the weights off the card; "Wan2.2 Performance Analysis Report" says
// for one of the jobs that the card was an L40S. The last one is the "Original Performance" of "Wan
// 2.2 T2V Optimization - Complete Map". Case 04_14B_Speed_Preview_480p of the second report is left
// out: the report does not say its size, and 36.5 s a step are those of 1280x720.
constexpr Published kPublished[] = {
    {"01_Speed_Preview_704p", 1280, 704, 161, 5, 1, 344.73},
    {"02_Efficiency_Quality_704p", 1280, 704, 161, 30, 1, 593.45},
    {"03_Max_Quality_704p", 1280, 704, 161, 50, 1, 707.29},
    {"04_15s_50steps_720p", 1280, 704, 361, 50, 1, 2197.13},
    {"01_5B_Speed_Preview_704p", 1280, 704, 81, 5, 1, 143.25},
    {"01_Speed_Preview_480p", 1280, 704, 81, 5, 1, 114.94},
    {"02_5B_Efficiency_Mode_704p", 1280, 704, 81, 10, 1, 151.58},
    {"02_Efficiency_Mode_720p", 1280, 704, 81, 10, 1, 147.19},
    {"03_5B_Performance_Mode_704p", 1280, 704, 81, 10, 1, 146.27},
    {"03_Performance_Mode_720p", 1280, 704, 81, 10, 1, 149.29},
    {"05_14B_Map_720p", 1280, 720, 81, 40, 2, 300},
};

}  // namespace

std::optional<double> PublishedSeconds(const Run& run) {
  const wan::v1::GenerationRequest& request = run.report.request();
  // Variants of a case have no published time.
  if (!run.variant.empty()) return std::nullopt;
  const auto& components = run.report.plan().components();
  const auto transformers = std::count_if(components.begin(), components.end(),
                                          [](const wan::v1::ComponentPlan& component) {
                                            return component.name().starts_with("transformer");
                                          });
  for (const Published& one : kPublished) {
    if (run.name != one.name || request.width() != one.width || request.height() != one.height ||
        request.num_frames() != one.frames || request.steps() != one.steps ||
        transformers != one.transformers) {
      continue;
    }
    return one.seconds;
  }
  return std::nullopt;
}

}  // namespace wan::client::reports
