#include "engine/checkpoint/distillation.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/families/model_family.h"
#include "engine/formats/file_errors.h"

namespace wan {
namespace {

namespace fs = std::filesystem;

bool IsLightX2vName(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower({name.data(), name.size()});
  return fs::path(lower).stem() == "distill_model" ||
         (absl::StrContains(lower, "lightx2v") && absl::StrContains(lower, "4step"));
}

bool IsRcmName(std::string_view name) {
  const std::string lower = absl::AsciiStrToLower({name.data(), name.size()});
  return absl::StartsWith(lower, "rcm") || absl::StartsWith(lower, "turbowan");
}

// Each ...Sign function returns a text that names the feature by which it recognises a distilled
// transformer; empty if it does not.

std::string LightX2vSign(const Component<TransformerConfig>& transformer) {
  for (const TensorFile& file : transformer.files.files) {
    std::error_code error;
    const fs::path target = fs::canonical(file.path, error);
    for (const fs::path& path : {fs::path(file.path), target}) {
      if (IsLightX2vName(path.filename().string())) {
        return absl::StrCat("the file name ", Printable(path.filename().string()));
      }
    }
  }
  return "";
}

std::string RcmSign(const Component<TransformerConfig>& transformer) {
  for (const TensorFile& file : transformer.files.files) {
    for (const StoredTensor& tensor : file.tensors) {
      if (tensor.name == "patch_embedding.weight" && tensor.shape.size() == 2) {
        return "its linear patch embedding";
      }
    }
  }
  return "";
}

// FastVideo's basic_dmd: timesteps 1000, 757 and 522 of the levels that shift 8 gives.
FewStepConfig FastWanSchedule(const ModelFamily&) {
  return {.timesteps = {1000, 280, 120},
          .shift = 8,
          .solver = "lcm",
          .rounding = TimestepRounding::kWhole};
}

FewStepConfig LightX2vSchedule(const ModelFamily& family) {
  FewStepConfig config{.timesteps = {1000, 750, 500, 250}, .shift = 5};
  if (family.experts.size() == 2) config.boundary_step_index = 2;
  return config;
}

// rCM's noise levels are angles of TrigFlow; the first is the arc tangent of the largest sigma. The
// sigma of a flow follows from an angle by sin / (sin + cos).
FewStepConfig RcmSchedule(const ModelFamily& family) {
  const double largest = family.image == ImageRole::kCondition ? 200 : 80;
  FewStepConfig config{.shift = 1, .solver = "lcm", .rounding = TimestepRounding::kBFloat16};
  for (const double tangent : {largest, std::tan(1.5), std::tan(1.4), std::tan(1.0)}) {
    config.timesteps.push_back(1000 * tangent / (1 + tangent));
  }
  return config;
}

// Returns the distillation's schedule if `sign_of` recognises all experts. If it recognises only
// some of them, appends a problem.
template <typename SignOf, typename Schedule>
std::optional<FewStepConfig> Recognise(const char* name, const CheckpointParts& parts,
                                       const SignOf& sign_of, const Schedule& schedule,
                                       std::vector<absl::Status>& problems) {
  std::string sign;
  std::string without;
  for (const Component<TransformerConfig>& transformer : parts.transformers) {
    if (transformer.files.files.empty()) continue;  // this component's own problems say why
    const std::string found = sign_of(transformer);
    (found.empty() ? without : sign) = found.empty() ? transformer.where : found;
  }
  if (sign.empty()) return std::nullopt;
  if (!without.empty()) {
    problems.push_back(Damaged(
        without, absl::StrCat("belongs to an ordinary model, but the other expert is ", name,
                              "'s distilled one, by ", sign, "; both must be of one kind")));
    return std::nullopt;
  }
  FewStepConfig config = schedule(FindModelFamily(*parts.family));
  config.recognised = absl::StrCat(name, ", by ", sign);
  return config;
}

}  // namespace

bool IsDistilledFileName(std::string_view name) { return IsLightX2vName(name) || IsRcmName(name); }

std::optional<FewStepConfig> RecogniseDistillation(const CheckpointParts& parts,
                                                   std::vector<absl::Status>& problems) {
  if (!parts.family.has_value() || parts.layout == Layout::kSynthetic) return std::nullopt;
  const auto fast_wan = [&](const Component<TransformerConfig>&) -> std::string {
    if (parts.pipeline_class != kFastWanPipeline) return "";
    return absl::StrCat("the pipeline class ", std::string(kFastWanPipeline));
  };
  std::optional<FewStepConfig> found =
      Recognise("FastWan", parts, fast_wan, FastWanSchedule, problems);
  if (!found) found = Recognise("rCM", parts, RcmSign, RcmSchedule, problems);
  if (!found) found = Recognise("LightX2V", parts, LightX2vSign, LightX2vSchedule, problems);
  return found;
}

}  // namespace wan
