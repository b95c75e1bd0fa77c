// Compares runs of one case: which settings differ between two of them, and whether their results
// do. All functions are pure.
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

// A setting that only one of the runs has is no difference: nobody knows the other's. Reports have
// no h264_preset, cpu_threads or warm_up of a server; a variant whose name is such a line of its
// configuration, "h264_preset: ultrafast", has that value.
std::vector<Difference> DifferencesOf(const Run& before, const Run& after);

// Without the differences that another one brings with it: with guidance 1 there is no batch of
// two forwards, for example. What is left was chosen.
std::vector<Difference> CausesOf(const std::vector<Difference>& differences);

// "vae_precision fp32", or "transformer=host" of a residency.
std::string TextBefore(const Difference& difference);
std::string TextAfter(const Difference& difference);

// Of the runs of each variant of the case the one whose time is the median (the faster of two
// middle ones), in the order of `runs`. The case's own, which has no variant, is among them.
std::vector<const Run*> MedianRuns(const std::vector<Run>& runs, const std::string& name);

// Whether two of the case's runs had the same result from the same seed: "latents: same bits;
// frames: other bits", or how far the latents differ. Results were compared with those of the run
// without a variant, the first run of each variant.
std::string ResultText(const Run& before, const Run& after, const std::vector<Run>& runs);

// What tables with ResultText say below them.
inline constexpr char kResultNote[] =
    "Frames are compared by the bytes of the MP4 files, which another preset or version of the "
    "encoder changes as well.";

}  // namespace wan::client::reports
