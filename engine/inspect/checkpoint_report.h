// What a checkpoint is and what is wrong with it, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace wan {

// An object:
//   "path", "ok" (no problems)
//   "layout"           "original", "diffusers", "synthetic", or null if it is none of them
//   "model"            "ti2v-5b", "t2v-a14b", "i2v-a14b", or null if it could not be made out
//   "expert_boundary"  fraction of the schedule, or null
//   "few_step"         null, or {"timesteps", "shift", and "boundary_step_index" if it is set} of a
//                      distilled checkpoint
//   "generation_defaults"  null, or the members of the checkpoint's own defaults of requests
//   "tokenizer"        path of the SentencePiece model, or null
//   "components"       array of {"name", "file", "files", "tensors", "parameters", "bytes",
//                      "dtypes": {name: tensors}, "dimensions": object or null, "problems"}
//   "problems"         array of texts: those of no component, or between components
// Tensors are counted as far as their files could be read.
nlohmann::ordered_json InspectCheckpoint(const std::string& path);

// The report as text, with a closing newline.
std::string ReportText(const nlohmann::ordered_json& report);

}  // namespace wan
