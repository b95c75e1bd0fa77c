// The seconds that others have published for the cases of `wanctl bench seeds`.
#pragma once

#include <string>

#include "client/reports/run.h"

namespace wan::client::reports {

// Returns what the report from which the run's case has its name has measured, with its card if it
// names one: "593.45 (L40S)"; empty unless name, size, frames and steps are those of such a report.
std::string PublishedSeconds(const Run& run);

// The note that is printed below tables with PublishedSeconds.
inline constexpr char kPublishedNote[] =
    "Published is what the report with this case has for Wan's generate.py, with the loading of "
    "the "
    "model, on the card that it names; compare it with Cold.";

}  // namespace wan::client::reports
