#include "client/reports/comparison.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/reports/ceilings.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;
using Settings = std::map<std::string, std::string>;

constexpr char kResidency[] = "residency_policies ";

std::string YesNo(bool value) { return value ? "yes" : "no"; }

// Returns the guidance scales, "5", or "1,3.5" if the experts have different ones.
std::string Scales(const wan::v1::GenerationRequest& request) {
  const auto& scales = request.guidance_scale();
  const bool alike =
      std::all_of(scales.begin(), scales.end(), [&](double scale) { return scale == scales[0]; });
  return !scales.empty() && alike ? absl::StrCat(scales[0]) : absl::StrJoin(scales, ",");
}

void AddRequest(const JobReport& report, Settings& settings) {
  const wan::v1::GenerationRequest& request = report.request();
  settings["size"] = Resolution(report);
  settings["frames"] = absl::StrCat(request.num_frames());
  settings["steps"] = absl::StrCat(request.steps());
  settings["guidance_scale"] = Scales(request);
  settings["shift"] = absl::StrCat(request.shift());
  settings["solver"] = wan::v1::Solver_Name(request.solver()).substr(sizeof("SOLVER_") - 1);
  settings["seed"] = absl::StrCat(request.seed());
  settings["quality"] = QualityOf(report);
  settings["vae_precision"] = VaePrecision(report);
  if (VaePrecision(report).empty()) settings["vae_precision"] = "default";
  if (request.decoder() == wan::v1::DECODER_TINY) settings["decoder"] = "tiny";
  if (report.plan().exact_blocks_size() > 0) {
    settings["exact_blocks"] = absl::StrJoin(report.plan().exact_blocks(), ",");
  }
  settings["loras"] = absl::StrJoin(
      request.loras(), ",",
      [](std::string* out, const wan::v1::LoraScale& lora) { out->append(lora.name()); });
  if (!request.sigmas().empty()) settings["sigmas"] = absl::StrJoin(request.sigmas(), ",");
  if (request.has_boundary_step()) {
    settings["boundary_step"] = absl::StrCat(request.boundary_step());
  }
  if (request.loras().empty()) settings["loras"] = "none";
  const auto warm = request.labels().find(kWarmLabel);
  if (warm != request.labels().end()) settings["warm_up"] = warm->second;
}

void AddSystem(const JobReport& report, Settings& settings) {
  const wan::v1::SystemDescription& system = report.system();
  settings["server"] =
      absl::StrCat(system.server_version(), system.server_revision().empty() ? "" : "-",
                   system.server_revision().substr(0, 12));
  settings["compute_revision"] = absl::StrCat(report.provenance().compute_revision());
  settings["libtorch"] = system.libtorch_version();
  settings["driver"] = system.gpu().driver_version();
  settings["processors"] = absl::StrCat(system.cpu_cores());
}

void AddPlan(const wan::v1::PlanReport& plan, Settings& settings) {
  // Without guidance a step has only one forward, so nothing is batched.
  if (plan.guided()) settings["batched_guidance"] = YesNo(plan.batched_guidance());
  settings["record_forwards"] = YesNo(plan.record_forwards());
  settings["decode_tiles"] = absl::StrCat(plan.decode_tile_rows(), "x", plan.decode_tile_columns());
  for (const wan::v1::ComponentPlan& component : plan.components()) {
    settings[absl::StrCat(kResidency, component.name())] = component.residency();
  }
}

// Returns all known settings; the key is the name.
Settings SettingsOf(const JobReport& report) {
  Settings settings;
  if (report.has_request()) AddRequest(report, settings);
  if (report.has_system()) AddSystem(report, settings);
  settings["dtype"] = report.dtype();
  settings["device"] =
      report.system().gpu().name().empty() ? report.device() : report.system().gpu().name();
  // The report of a group of one device has no shares, so count at least one device.
  settings["devices"] = absl::StrCat(std::max(1, report.devices_size()));
  if (report.has_plan()) AddPlan(report.plan(), settings);
  std::erase_if(settings, [](const auto& setting) { return setting.second.empty(); });
  return settings;
}

// Returns the setting of the server that the variant's name states; nullopt if the name states
// none.
std::optional<std::pair<std::string, std::string>> Stated(const Run& run) {
  for (const char* key : {"h264_preset", "cpu_threads", "warm_up"}) {
    const std::string start = absl::StrCat(key, ": ");
    if (!absl::StartsWith(run.variant, start)) continue;
    std::string value = run.variant.substr(start.size());
    if (value == "true" || value == "false") value = YesNo(value == "true");
    return std::pair(std::string(key), std::move(value));
  }
  return std::nullopt;
}

// Returns the value that a setting has in a run whose name does not state it.
std::string Otherwise(const std::string& value) {
  if (value == "yes") return "no";
  if (value == "no") return "yes";
  return "another";
}

// Returns the comparison of the variant with the case's run without a variant. For a run without a
// variant, returns that the results are equal.
const ResultDifference* ResultOf(const Run& variant, const std::vector<Run>& runs) {
  static constexpr ResultDifference kItself{true, std::nullopt, true};
  if (variant.variant.empty()) return &kItself;
  for (const Run& run : runs) {
    if (run.name == variant.name && run.variant == variant.variant && run.difference) {
      return &*run.difference;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<Difference> DifferencesOf(const Run& before, const Run& after) {
  Settings old = SettingsOf(before.report), current = SettingsOf(after.report);
  const auto said_before = Stated(before), said_after = Stated(after);
  if (said_before) {
    old[said_before->first] = said_before->second;
    current[said_before->first] = Otherwise(said_before->second);
  }
  if (said_after) {
    current[said_after->first] = said_after->second;
    if (!said_before || said_before->first != said_after->first) {
      old[said_after->first] = Otherwise(said_after->second);
    }
  }
  std::vector<Difference> differences;
  for (const auto& [setting, value] : current) {
    const auto found = old.find(setting);
    if (found != old.end() && found->second != value) {
      differences.push_back({setting, found->second, value});
    }
  }
  return differences;
}

std::vector<Difference> CausesOf(const std::vector<Difference>& differences) {
  struct Consequence {
    const char* cause;
    const char* effect;
  };
  // Pairs of a setting and a setting that the planner derives from it (and from free memory).
  constexpr auto kConsequences = std::to_array<Consequence>({
      {"guidance_scale", "record_forwards"},
      {"vae_precision", "decode_tiles"},
      {"quality", "decode_tiles"},
      {"quality", "batched_guidance"},
      {"quality", "record_forwards"},
      {"dtype", "decode_tiles"},
      {"dtype", "batched_guidance"},
      {"dtype", "record_forwards"},
      {"size", "decode_tiles"},
      {"size", "batched_guidance"},
      {"size", "record_forwards"},
      {"frames", "decode_tiles"},
      {"frames", "batched_guidance"},
      {"frames", "record_forwards"},
      // Forward passes with streamed weights, or on the CPU, are not recorded.
      {"residency_policies transformer", "record_forwards"},
      {"residency_policies transformer_2", "record_forwards"},
  });
  std::set<std::string> chosen;
  for (const Difference& difference : differences) chosen.insert(difference.setting);
  std::vector<Difference> causes = differences;
  std::erase_if(causes, [&](const Difference& difference) {
    return std::any_of(kConsequences.begin(), kConsequences.end(), [&](const Consequence& one) {
      return difference.setting == one.effect && chosen.contains(one.cause);
    });
  });
  return causes;
}

namespace {

std::string Text(const std::string& setting, const std::string& value) {
  if (absl::StartsWith(setting, kResidency)) {
    return absl::StrCat(setting.substr(sizeof(kResidency) - 1), "=", value);
  }
  return absl::StrCat(setting, " ", value);
}

}  // namespace

std::string TextBefore(const Difference& difference) {
  return Text(difference.setting, difference.before);
}

std::string TextAfter(const Difference& difference) {
  return Text(difference.setting, difference.after);
}

std::vector<const Run*> MedianRuns(const std::vector<Run>& runs, const std::string& name) {
  std::vector<const Run*> chosen;
  std::set<std::string> seen;
  for (const Run& run : runs) {
    if (run.name != name || !seen.insert(run.variant).second) continue;
    std::vector<const Run*> same;
    for (const Run& other : runs) {
      if (other.name == name && other.variant == run.variant) same.push_back(&other);
    }
    std::stable_sort(same.begin(), same.end(), [](const Run* a, const Run* b) {
      return TotalSeconds(a->report) < TotalSeconds(b->report);
    });
    chosen.push_back(same[(same.size() - 1) / 2]);
  }
  return chosen;
}

namespace {

// Returns whether two results are equal, given whether each of them equals a third one. Returns
// nullopt if neither equals the third, or if one is unknown.
std::optional<bool> Same(std::optional<bool> a, std::optional<bool> b) {
  if (!a || !b || (!*a && !*b)) return std::nullopt;
  return *a && *b;
}

std::string LatentsText(const ResultDifference& a, const ResultDifference& b) {
  const std::optional<bool> same = Same(a.identical, b.identical);
  if (!same) return "latents: not compared with each other";
  if (*same) return "latents: same bits";
  // The base result equals `a` or `b`, so the difference of the other one from the base result is
  // the difference of `a` and `b`.
  const ResultDifference& difference = a.identical ? b : a;
  if (!difference.relative) return "latents: other bits";
  return absl::StrFormat("latents differ by %.2g (relative)", *difference.relative);
}

std::string FramesText(const ResultDifference& a, const ResultDifference& b) {
  const std::optional<bool> same = Same(a.same_video, b.same_video);
  if (!same) return "frames: not compared";
  if (*same) return "frames: same bits";
  const ResultDifference& difference = a.same_video.value_or(false) ? b : a;
  if (!difference.psnr) return "frames: other bits";
  return absl::StrFormat("frames: PSNR %.1f dB", *difference.psnr);
}

}  // namespace

std::string ResultText(const Run& before, const Run& after, const std::vector<Run>& runs) {
  const ResultDifference* const a = ResultOf(before, runs);
  const ResultDifference* const b = ResultOf(after, runs);
  if (a == nullptr || b == nullptr) return "not compared";
  return absl::StrCat(LatentsText(*a, *b), "; ", FramesText(*a, *b));
}

}  // namespace wan::client::reports
