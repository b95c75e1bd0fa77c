// Describes the file of a LoRA for a model: what it changes, with which factor, and what it leaves
// out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace wan {

// Reads a LoRA's file, or a folder that PEFT wrote, for the transformers of the checkpoint at
// `model` (a folder, or "synthetic:NAME"). The result has:
//   "path", "model"
//   "ok"            whether the file can be used
//   "kinds"         for example ["LoRA", "difference"]
//   "rank", "tensors", "bytes"
//   "factor"        [least, largest] alpha / rank, or null
//   "left_out"      names of tensors for which the model has no place
//   "schedule"      {"steps", "shift", "guidance_scale", "boundary_step"} of a known few-step LoRA,
//                   or null
//   "problems"      texts; if there are any, only path, model and ok are valid
nlohmann::ordered_json InspectLora(const std::string& path, const std::string& model);

std::string LoraReportText(const nlohmann::ordered_json& report);

}  // namespace wan
