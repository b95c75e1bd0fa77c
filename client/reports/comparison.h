// Compares two runs of one case: their settings and their results. All functions are pure.
#pragma once

#include <string>
#include <vector>

#include "client/reports/run.h"

namespace wan::client::reports {

// A setting of the request, the plan, the server or the benchmark ("warm_up") that differs between
// two runs. Each component's residency is a setting, "residency_policies transformer".
struct Difference {
  std::string setting;
  std::string before;
  std::string after;
};

// Returns the settings that differ; leaves out settings that only one of the runs reports. Reports
// do not contain h264_preset, cpu_threads and warm_up of the server; these are read from the name
// of a variant, such as "h264_preset: ultrafast".
std::vector<Difference> DifferencesOf(const Run& before, const Run& after);

// Drops differences that follow from another one; for example, guidance 1 implies that forwards are
// not batched.
std::vector<Difference> CausesOf(const std::vector<Difference>& differences);

// The two functions return the setting with its value before or after: "vae_precision fp32", or
// "transformer=host" for a residency.
std::string TextBefore(const Difference& difference);
std::string TextAfter(const Difference& difference);

// Returns, for each variant of the case, the run with the median time (the faster of two middle
// ones), in the order of `runs`. The runs without a variant count as one variant.
std::vector<const Run*> MedianRuns(const std::vector<Run>& runs, const std::string& name);

// Says whether two runs of the case had the same result: "latents: same bits; frames: PSNR 52.1
// dB", or how much the latents differ. The benchmark has compared the first run of each variant
// with the run without a variant.
std::string ResultText(const Run& before, const Run& after, const std::vector<Run>& runs);

// The note that is printed below tables with ResultText.
inline constexpr char kResultNote[] =
    "Frames are those of the MP4 files, which another preset or version of the encoder changes as "
    "well; PSNR is the mean over the frames, of RGB.";

}  // namespace wan::client::reports
