// Flags that several commands of wan_bench have. Each function adds a flag to `app`. `value` must
// outlive `app`; its content is the flag's default.
#pragma once

#include <string>

#include "CLI/CLI.hpp"

namespace wan {

// `help` is the flag's help text; pass one if the flag concerns more than the measured model.
void AddModelFlag(CLI::App& app, std::string& value,
                  const std::string& help = "checkpoint, or synthetic:NAME");
void AddDeviceFlag(CLI::App& app, std::string& value);
void AddDtypeFlag(CLI::App& app, std::string& value, const std::string& help = "");
void AddShapeFlag(CLI::App& app, std::string& value,
                  const std::string& help = "WIDTHxHEIGHTxFRAMES");
void AddRepeatsFlag(CLI::App& app, int& value, const std::string& help = "");
void AddWarmupFlag(CLI::App& app, int& value);
// Adds the flag for Repetition::seconds.
void AddSecondsFlag(CLI::App& app, double& value);

}  // namespace wan
