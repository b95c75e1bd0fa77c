#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/reports/sections.h"
#include "client/reports/step_changes.h"

namespace wan::client::reports {
namespace {

using wan::v1::JobReport;

void Push(Facts& facts, std::string name, std::string key, Cell value, std::string unit = "") {
  if (std::holds_alternative<std::monostate>(value)) return;
  facts.facts.push_back({std::move(name), std::move(key), std::move(value), std::move(unit)});
}

Facts SystemContext(const JobReport& report) {
  const wan::v1::SystemDescription& system = report.system();
  const wan::v1::GpuDescription& gpu = system.gpu();
  Facts facts;
  if (!gpu.name().empty()) {
    Push(facts, "Device", "gpu",
         gpu.has_memory_total_bytes()
             ? absl::StrFormat("%s (%.1f GiB)", gpu.name(),
                               static_cast<double>(gpu.memory_total_bytes()) / kGibibyte)
             : gpu.name());
    Push(facts, "UUID", "gpu_uuid", TextCell(gpu.uuid()));
    Push(facts, "Power Limit", "power_limit_watts",
         CellOf(gpu.has_power_limit_watts() ? std::optional<double>(gpu.power_limit_watts())
                                            : std::nullopt,
                0),
         "W");
  }
  std::string machine = system.cpu_name();
  if (system.cpu_cores() > 0)
    absl::StrAppend(&machine, ", ", system.cpu_cores(), " logical processors");
  if (system.has_memory_total_bytes()) {
    absl::StrAppendFormat(&machine, ", %.1f GiB",
                          static_cast<double>(system.memory_total_bytes()) / kGibibyte);
  }
  Push(facts, gpu.name().empty() ? "Device" : "Machine", "machine", TextCell(machine));
  std::vector<std::string> software;
  const auto add = [&software](const std::string& name, const std::string& version) {
    if (!version.empty()) software.push_back(absl::StrCat(name, " ", version));
  };
  add("wanserve", system.server_version());
  add("revision", system.server_revision());
  if (const int number = report.provenance().compute_revision(); number != 0) {
    add("compute revision", absl::StrCat(number));
  }
  add("LibTorch", system.libtorch_version());
  add("CUDA", system.cuda_version());
  add("cuDNN", system.cudnn_version());
  add("driver", gpu.driver_version());
  Push(facts, "Software", "software", TextCell(absl::StrJoin(software, " | ")));
  return facts;
}

std::string Settings(const JobReport& report) {
  std::vector<std::string> settings = {absl::StrCat("Precision=", report.dtype())};
  if (const int first = report.plan().first_step(); first > 0) {
    settings.push_back(absl::StrCat("Steps not computed=the first ", first));
  }
  if (QualityOf(report) != kExactQuality) {
    settings.push_back(absl::StrCat("Quality=", QualityOf(report)));
  }
  if (report.plan().eight_bits()) settings.emplace_back("Products and self-attention=8 bits");
  if (report.plan().exact_blocks_size() > 0) {
    settings.push_back(
        absl::StrCat("Exact blocks=", absl::StrJoin(report.plan().exact_blocks(), ",")));
  }
  if (report.request().decoder() == wan::v1::DECODER_TINY) settings.emplace_back("Decoder=tiny");
  if (const int reused = report.plan().reused_steps_size(); reused > 0) {
    settings.push_back(absl::StrCat("Planned steps that reuse blocks=", reused, " of ",
                                    report.request().steps() - report.plan().first_step()));
  }
  if (!VaePrecision(report).empty()) settings.push_back(absl::StrCat("VAE=", VaePrecision(report)));
  if (report.has_plan() && report.plan().guided()) {
    settings.emplace_back(report.plan().batched_guidance() ? "Guidance=one batch"
                                                           : "Guidance=two forwards");
  }
  if (report.plan().record_forwards()) settings.emplace_back("Forwards=recorded graphs");
  if (report.has_request()) settings.push_back(absl::StrCat("Seed=", report.request().seed()));
  return absl::StrJoin(settings, " | ");
}

Section ExecutiveSummary(const JobReport& report) {
  const double total = TotalSeconds(report);
  const StepHistory history = StepHistoryOf(report);
  double denoising = 0, decoding = 0;
  for (const double seconds : history.seconds) denoising += seconds;
  for (const TimeShare& share : TimeBudget(report)) {
    if (share.kind == StageKind::kDecoding) decoding = share.seconds;
  }
  Facts facts;
  Push(facts, "Settings", "settings", Settings(report));
  const int frames = report.request().num_frames();
  if (frames > 0 && total > 0) {
    const double pixels =
        static_cast<double>(frames) * report.request().width() * report.request().height() / 1e6;
    Push(facts, "Video Throughput", "frames_per_second", Number{frames / total, 2},
         absl::StrFormat("frames/s (%.2f MPx/s) over Total_Execution", pixels / total));
    if (denoising + decoding > 0) {
      Push(facts, "Without the rest", "frames_per_second_compute",
           Number{frames / (denoising + decoding), 2},
           "frames/s over the steps and the decoding alone");
    }
  }
  double joules = 0;
  if (const StageReport* whole = FindStage(report, StageKind::kTotal))
    joules = whole->energy_joules();
  if (joules > 0) {
    Push(facts, "Energy", "energy_joules", Number{joules, 0},
         absl::StrFormat("J of the card (%.1f Wh, mean %.0f W)", joules / 3600, joules / total));
  }
  return {"Executive Summary", "executive_summary", {std::move(facts)}, {}};
}

Section PipelineLatency(const JobReport& report) {
  Section section{"Detailed Pipeline Latency", "pipeline_latency", {}, {}};
  const double total = TotalSeconds(report);
  Table table;
  table.columns = {{"Part", "part"}, {"Seconds", "seconds"}, {"Share (%)", "share_percent"}};
  if (const StageReport* load = ModelLoad(report)) {
    table.rows.push_back({"Initialization, before the job", Number{load->seconds(), 2}, Cell()});
  }
  const StepHistory history = StepHistoryOf(report);
  for (const TimeShare& share : TimeBudget(report)) {
    // Leave out parts that both columns would show as 0.
    if (share.seconds < 0.005 && share.seconds < 0.0005 * total) continue;
    Cell percent;
    if (total > 0) percent = Number{share.seconds / total * 100, 1};
    table.rows.push_back({share.name, Number{share.seconds, 2}, percent});
    if (share.kind != StageKind::kInference || history.seconds.empty()) continue;
    table.rows.push_back({"- First Step", Number{history.seconds.front(), 2}, Cell()});
    table.rows.push_back({"- Stable Step (median of the longest level)",
                          Number{history.RegularSeconds(), 2}, Cell()});
  }
  table.rows.push_back({"Total_Execution", Number{total, 2}, Number{100, 1}});
  section.blocks.push_back(std::move(table));
  return section;
}

}  // namespace

Section PerformanceAnalysis(const std::vector<Run>& runs) {
  Section section{"Wan2.2 Performance Analysis Report", "performance", {}, {}};
  const std::vector<const Run*> chosen = Representatives(runs);
  const auto same_machine = [&chosen](const Run* run) {
    return run->report.system().SerializeAsString() ==
           chosen.front()->report.system().SerializeAsString();
  };
  const bool one_machine = std::all_of(chosen.begin(), chosen.end(), same_machine);
  const auto context = [](const JobReport& report) {
    return Section{"System Context", "system_context", {SystemContext(report)}, {}};
  };
  if (one_machine && !chosen.empty()) section.sections.push_back(context(chosen.front()->report));
  section.blocks.push_back(
      Paragraph{"Shares of the latency add up to Total_Execution: time in which two stages overlap "
                "counts once. Rows of the trace have what the stage breakdown leaves out."});
  for (const Run* run : chosen) {
    Section child{FullName(*run), "case", {}, {}};
    if (!one_machine) child.sections.push_back(context(run->report));
    child.sections.push_back(ExecutiveSummary(run->report));
    child.sections.push_back(PipelineLatency(run->report));
    child.sections.push_back(MemoryTelemetry(run->report));
    child.sections.push_back(ExecutionTrace(run->report));
    section.sections.push_back(std::move(child));
  }
  return section;
}

}  // namespace wan::client::reports
