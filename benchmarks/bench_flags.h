// The flags that several commands of wan_bench have: one name, one meaning and one text of help.
// Each function enters a flag into `app`; `value` must outlive it, and holds the default.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace wan {

// `help` says more where the model is not simply the one that is measured.
void AddModelFlag(CLI::App& app, std::string& value,
                  const std::string& help = "checkpoint, or synthetic:NAME");
void AddDeviceFlag(CLI::App& app, std::string& value);
void AddDtypeFlag(CLI::App& app, std::string& value, const std::string& help = "");
void AddShapeFlag(CLI::App& app, std::string& value,
                  const std::string& help = "WIDTHxHEIGHTxFRAMES");
void AddRepeatsFlag(CLI::App& app, int& value, const std::string& help = "");
void AddWarmupFlag(CLI::App& app, int& value);
// For Repetition::seconds.
void AddSecondsFlag(CLI::App& app, double& value);

}  // namespace wan
