// Flags that several commands of wan_bench share. Each function enters a flag into `app`; `value`
// must outlive it, and holds the default.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace wan {

// `help` extends the help text if the flag means more than the measured model.
void AddModelFlag(CLI::App& app, std::string& value,
                  const std::string& help = "checkpoint, or synthetic:NAME");
void AddDeviceFlag(CLI::App& app, std::string& value);
void AddDtypeFlag(CLI::App& app, std::string& value, const std::string& help = "");
void AddShapeFlag(CLI::App& app, std::string& value,
                  const std::string& help = "WIDTHxHEIGHTxFRAMES");
void AddRepeatsFlag(CLI::App& app, int& value, const std::string& help = "");
void AddWarmupFlag(CLI::App& app, int& value);
// Sets Repetition::seconds.
void AddSecondsFlag(CLI::App& app, double& value);

}  // namespace wan
