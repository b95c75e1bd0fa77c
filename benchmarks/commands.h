// The commands that wan_bench has. Each function adds its command's options to `app`, and returns
// the function that runs the command after parsing. The returned function returns whether the
// results kept all limits that the user set.
#pragma once

#include <functional>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "benchmarks/session.h"

namespace wan {

using BenchCommand = std::function<absl::StatusOr<bool>(Session&)>;

BenchCommand AddCeilings(CLI::App& app);   // ceilings: the device's highest rates
BenchCommand AddForward(CLI::App& app);    // forward: one forward pass of a transformer
BenchCommand AddGroup(CLI::App& app);      // group: one denoising step that several devices compute
                                           // together
BenchCommand AddBlock(CLI::App& app);      // block: a block's operators, predicted and measured
BenchCommand AddAttention(CLI::App& app);  // attention: attention alone, compared with cuDNN's
BenchCommand AddVae(CLI::App& app);        // vae: one pass through an autoencoder
BenchCommand AddText(CLI::App& app);       // text: one text through the text encoder
BenchCommand AddLoad(CLI::App& app);       // load: weights from the page cache to the device
BenchCommand AddMemory(CLI::App& app);     // memory: each stage's peak and the plan's estimate
BenchCommand AddLora(CLI::App& app);       // lora: switching between two LoRAs
BenchCommand AddFinite(CLI::App& app);     // finite: the check of latents for NaN and infinity
BenchCommand AddJob(CLI::App& app);        // job: a whole job of the engine
BenchCommand AddStop(CLI::App& app);       // stop: how long a stop takes in each stage
BenchCommand AddQueue(CLI::App& app);      // queue: the cost of a long queue of jobs
BenchCommand AddEncoder(CLI::App& app);    // encoder: the video encoder's memory, speed and quality

}  // namespace wan
