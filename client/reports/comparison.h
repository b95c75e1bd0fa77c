// Compares two runs of one case: their settings and their results. All functions are pure.
#pragma once

#include <string>
#include <vector>

#include "client/reports/run.h"

namespace wan::client::reports {

// A setting that differs between two runs: of the request, the plan, the server, or of the
// benchmark ("warm_up"). Where weights live is a setting of each component,
// "residency_policies transformer".
struct Difference {
  std::string setting;
  std::string before;
  std::string after;
};

// A setting that only one of the runs reports is not counted, because the other's value is unknown.
// Reports have no h264_preset, cpu_threads or warm_up of a server; a variant whose name is such a
// line of its configuration, "h264_preset: ultrafast", has that value.
std::vector<Difference> DifferencesOf(const Run& before, const Run& after);

// Drops differences that follow from another one; for example, guidance 1 implies no batch of two
// forwards. The rest were chosen.
std::vector<Difference> CausesOf(const std::vector<Difference>& differences);

// "vae_precision fp32", or "transformer=host" of a residency.
std::string TextBefore(const Difference& difference);
std::string TextAfter(const Difference& difference);

// Returns, for each variant of the case, the run with the median time (the faster of two middle
// ones), in the order of `runs`. Runs without a variant count as one more variant.
std::vector<const Run*> MedianRuns(const std::vector<Run>& runs, const std::string& name);

// Says whether two of the case's runs had the same result from the same seed: "latents: same bits;
// frames: other bits", or how far the latents differ. Results were compared with those of the run
// without a variant, the first run of each variant.
std::string ResultText(const Run& before, const Run& after, const std::vector<Run>& runs);

// The note below tables with ResultText.
inline constexpr char kResultNote[] =
    "Frames are compared by the bytes of the MP4 files, which another preset or version of the "
    "encoder changes as well.";

}  // namespace wan::client::reports
