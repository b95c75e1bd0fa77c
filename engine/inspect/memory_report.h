// What a model's jobs would take of a card, and where their weights would live: nothing is loaded,
// and no device is asked.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/api/residency.h"

namespace wan {

struct MemoryQuestion {
  std::string path;  // of a checkpoint, or "synthetic:NAME"
  // What the process may use of the card, as EngineOptions::device_memory_limit; 0: no limit.
  uint64_t device_memory_limit = 0;
  std::vector<ComponentResidency> residency;  // what is not named is kAuto
  std::vector<VideoShape> shapes;             // empty: the model's default
  // With an image, of the models that can do without.
  bool image = false;
  // With texts as long as the model takes, and the model's default steps. In bf16.
};

// An object:
//   "path", "model", "device_memory_limit", "job_memory" (bytes that a job may hold; 0: no limit)
//   "components"  array of {"name", "bytes"}
//   "fits"        whether all of the videos do
//   "videos"      array of {"shape": "1280x704x121", "fits", and if it does:
//                   "policies": {component: policy}, "decode_tiles": "ROWSxCOLUMNS",
//                   "batched_guidance", "prefetch_experts", "peak_bytes", "host_bytes",
//                   "stages": array of {"stage", "weight_bytes", "activation_bytes"};
//                 else "message", which says what would}
// Errors: those of Checkpoint::Open, and INVALID_ARGUMENT for a limit that leaves nothing.
absl::StatusOr<nlohmann::ordered_json> MemoryReport(const MemoryQuestion& question);

// The report as text, with a closing newline.
std::string MemoryReportText(const nlohmann::ordered_json& report);

}  // namespace wan
