// The seconds that others have published for the cases of `wanctl bench seeds`.
#pragma once

#include <optional>

#include "client/reports/run.h"

namespace wan::client::reports {

// Returns the seconds of the published case that has the run's name, size, frames and steps; absent
// if no published case has them.
std::optional<double> PublishedSeconds(const Run& run);

// The note that is printed below tables with PublishedSeconds.
inline constexpr char kPublishedNote[] =
    "Published is what the report with this case has for Wan's generate.py, with the loading of "
    "the model; compare it with Cold. Its card is known of 02_Efficiency_Quality_704p (L40S) and "
    "of 05_14B_Map_720p (H100).";

}  // namespace wan::client::reports
