// The commands of wan_bench. Each function adds a command's options to `app` and returns the
// function that runs it after parsing. That returns whether all limits set by the user were kept.
#pragma once

#include <functional>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "benchmarks/session.h"

namespace wan {

using BenchCommand = std::function<absl::StatusOr<bool>(Session&)>;

BenchCommand AddCeilings(CLI::App& app);   // the device's highest rates
BenchCommand AddForward(CLI::App& app);    // one forward pass of a transformer
BenchCommand AddGroup(CLI::App& app);      // one step on several devices
BenchCommand AddBlock(CLI::App& app);      // each operator of one block, predicted and measured
BenchCommand AddAttention(CLI::App& app);  // attention alone, compared with cuDNN's
BenchCommand AddVae(CLI::App& app);        // one pass through an autoencoder
BenchCommand AddText(CLI::App& app);       // one text through the text encoder
BenchCommand AddLoad(CLI::App& app);       // loading weights from the page cache to the device
BenchCommand AddMemory(CLI::App& app);     // each stage's peak compared with the plan's estimate
BenchCommand AddLora(CLI::App& app);       // switching between two LoRAs
BenchCommand AddFinite(CLI::App& app);     // checking a step's latents, compared with a forward
BenchCommand AddJob(CLI::App& app);        // a whole job of the engine
BenchCommand AddStop(CLI::App& app);       // how long a stop takes in each stage
BenchCommand AddQueue(CLI::App& app);      // the cost of a long queue of jobs
BenchCommand AddEncoder(CLI::App& app);    // the video encoder's memory, speed and quality

}  // namespace wan
