// Describes a checkpoint and its problems, as text for people and as JSON for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace wan {

// Returns an object with these members:
//   "path", "ok" (true if there are no problems), "usable" (true also if only a tiny decoder that
//                      lies in the folder has problems)
//   "layout"           "original", "diffusers", "synthetic", "files" (parts were named, or the
//                      path is that of one component), or null for any other folder
//   "model"            "ti2v-5b", "t2v-a14b", "i2v-a14b", or null if it could not be recognised
//   "expert_boundary"  fraction of the schedule, or null
//   "few_step"         if distilled {"timesteps", "shift", "solver", "timestep_rounding",
//                      "recognised" (from what, or null), "boundary_step_index" if set}, or null
//   "generation_defaults"  the checkpoint's own defaults for requests, or null
//   "step_ratios"      how the job of step_ratios.json was sampled: {"solver", "steps", "shift",
//                      "guidance_scale"}, or null
//   "tokenizer"        the path of the SentencePiece model, or null
//   "components"       array of {"name", "file", "files", "tensors", "parameters", "bytes",
//                      "dtypes": {name or form in the file: tensors}, "dimensions": object or null,
//                      "problems"}
//   "problems"         array of texts: problems that belong to no single component
// Tensors are counted in the files that could be read. Never fails, because problems are part of
// the result. Thread-safe.
nlohmann::ordered_json InspectCheckpoint(const std::string& path);

// Returns the report as text for people, which ends with a newline.
std::string ReportText(const nlohmann::ordered_json& report);

}  // namespace wan
