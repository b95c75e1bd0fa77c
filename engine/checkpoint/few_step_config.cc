#include "engine/checkpoint/few_step_config.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "engine/api/file_problem.h"
#include "engine/api/timestep_rounding.h"
#include "engine/checkpoint/config_limits.h"
#include "engine/checkpoint/json_config.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/json_text.h"

namespace wan {
namespace {

using Problems = std::vector<absl::Status>;

constexpr std::string_view kTimesteps = "denoising_step_list";
constexpr std::string_view kRounding = "timestep_rounding";

void ReadRounding(JsonFields& fields, FewStepConfig& config) {
  const std::string name = fields.Text(kRounding);
  if (const auto rounding = ParseTimestepRounding(name); rounding.has_value()) {
    config.rounding = *rounding;
  } else {
    fields.AddProblem(absl::StrCat("\"", std::string(kRounding), "\" is ", Printable(name),
                                   ", expected none, whole or bf16"));
  }
}

// Reads the fields that both layouts have; `read_rest` reads and checks the fields of one layout.
template <typename ReadRest>
std::optional<FewStepConfig> Read(const std::string& path, Problems& problems, ReadRest read_rest) {
  if (!IsGiven(path)) return std::nullopt;
  return ReadJsonConfig<FewStepConfig>(
      path, problems, [&](JsonFields& fields) -> std::optional<FewStepConfig> {
        FewStepConfig config;
        if (!read_rest(fields, config)) return std::nullopt;
        config.timesteps = fields.Numbers(kTimesteps);
        if (fields.Has("boundary_step_index")) {
          config.boundary_step_index =
              static_cast<int>(fields.Integer("boundary_step_index", 0, kMaxFewSteps));
        }
        if (fields.Has(kRounding)) ReadRounding(fields, config);
        AddContradictions(config, fields);
        return config;
      });
}

void RefuseIfSet(JsonFields& fields, std::string_view key, std::string_view what) {
  if (fields.Has(key) && fields.Bool(key)) {
    fields.Refuse(absl::StrCat("\"", std::string(key), "\" is set: ", std::string(what)));
  }
}

}  // namespace

std::optional<FewStepConfig> ReadOriginalFewStep(const std::string& path, Problems& problems) {
  return Read(path, problems, [](JsonFields& fields, FewStepConfig& config) {
    config.shift = fields.Number("sample_shift");
    RefuseIfSet(fields, "enable_cfg", "few-step models run without guidance");
    if (fields.Has("solver")) {
      config.solver = fields.Text("solver");
      if (config.solver != "euler" && config.solver != "lcm") {
        fields.AddProblem(
            absl::StrCat("\"solver\" is ", Printable(config.solver), ", expected euler or lcm"));
      }
    }
    if (fields.Has("infer_steps")) {
      const int64_t steps = fields.Integer("infer_steps", 1, kMaxFewSteps);
      const size_t listed = fields.Numbers(kTimesteps).size();
      if (steps != static_cast<int64_t>(listed)) {
        fields.AddProblem(absl::StrCat("\"infer_steps\" is ", steps, ", but \"",
                                       std::string(kTimesteps), "\" has ", listed));
      }
    }
    return true;
  });
}

std::optional<FewStepConfig> ReadDiffusersFewStep(const std::string& path, Problems& problems) {
  return Read(path, problems, [](JsonFields& fields, FewStepConfig& config) {
    if (!fields.Has(kTimesteps)) return false;  // not a few-step checkpoint
    if (const std::string name = fields.Text("_class_name");
        name != "FlowMatchEulerDiscreteScheduler") {
      fields.Refuse(absl::StrCat("the scheduler is a ", Printable(name), ", but \"",
                                 std::string(kTimesteps),
                                 "\" is for FlowMatchEulerDiscreteScheduler"));
    }
    config.shift = fields.Number("shift");
    if (fields.Has("stochastic_sampling") && fields.Bool("stochastic_sampling")) {
      config.solver = "lcm";
    }
    // Each of these settings would change the noise levels that follow from timesteps and shift.
    for (const char* const key : {"use_dynamic_shifting", "use_karras_sigmas",
                                  "use_exponential_sigmas", "use_beta_sigmas", "invert_sigmas"}) {
      RefuseIfSet(fields, key, "only the plain Euler schedule is supported");
    }
    if (fields.Has("shift_terminal"))
      fields.Refuse("\"shift_terminal\" is set: only the plain Euler schedule is supported");
    return true;
  });
}

}  // namespace wan
