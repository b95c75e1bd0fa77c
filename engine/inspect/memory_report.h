// Reports how much memory a model's jobs need on a card, and where their weights are. Making the
// report loads no weights and needs no device.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/eight_bit_weights.h"
#include "engine/api/generation.h"
#include "engine/api/quality.h"
#include "engine/api/residency.h"

namespace wan {

struct MemoryQuestion {
  std::string path;  // folder of a checkpoint, or "synthetic:NAME"
  // The bytes of the card that the process may use (EngineOptions::device_memory_limit); 0: no
  // limit.
  uint64_t device_memory_limit = 0;
  std::vector<ComponentResidency> residency;  // components not listed are kAuto
  EightBitWeights eight_bit_weights;
  std::vector<VideoShape> shapes;  // empty: the model's default shape
  // Whether videos start from an image, for models that can also make videos without an image.
  bool image = false;
  std::optional<Quality> quality;  // unset: DefaultQuality
  // The report assumes bf16, texts of the maximum length, and the model's default number of steps.
};

// Returns an object with these members:
//   "path", "model", "device_memory_limit", "job_memory" (bytes that a job may hold; 0: no limit)
//   "quality"     "exact", "high" or "fast"
//   "components"  array of {"name", "bytes"}
//   "fits"        whether all videos fit
//   "videos"      array of {"shape": "1280x704x121", "fits", and if it fits:
//                   "policies": {component: policy}, "decode_tiles": "ROWSxCOLUMNS",
//                   "batched_guidance", "prefetch_experts", "peak_bytes", "host_bytes",
//                   "stages": array of {"stage", "weight_bytes", "activation_bytes"};
//                 otherwise "message", which says what would fit}
// Returns the errors of Checkpoint::Open, and INVALID_ARGUMENT if the limit leaves no memory for
// jobs.
absl::StatusOr<nlohmann::ordered_json> MemoryReport(const MemoryQuestion& question);

// Returns the report as text for people, which ends with a newline.
std::string MemoryReportText(const nlohmann::ordered_json& report);

}  // namespace wan
