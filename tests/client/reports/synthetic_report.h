// Job reports as tests write them down.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/reports/run.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client::reports {

// In a test's body, Run is the test's own function.
using MeasuredRun = Run;

inline constexpr uint64_t kGiB = uint64_t{1} << 30;

// Each run twice, so that a difference between two of them is more than the runs' spread.
inline std::vector<MeasuredRun> Twice(const std::vector<MeasuredRun>& runs) {
  std::vector<MeasuredRun> twice;
  for (const MeasuredRun& run : runs) {
    twice.push_back(run);
    twice.push_back(run);
    twice.back().number = 2;
  }
  return twice;
}

// Adds a stage that starts so many seconds after the job.
inline wan::v1::StageReport& AddStage(wan::v1::JobReport& report, const std::string& name,
                                      double start, double seconds) {
  wan::v1::StageReport& stage = *report.add_stages();
  stage.set_stage(name);
  const double at = 1767225600 + start;
  stage.mutable_start_time()->set_seconds(static_cast<int64_t>(std::floor(at)));
  stage.mutable_start_time()->set_nanos(
      static_cast<int32_t>(std::lround((at - std::floor(at)) * 1e9)));
  stage.set_seconds(seconds);
  return stage;
}

inline void AddPart(wan::v1::StageReport& stage, const std::string& name, double start,
                    double seconds, double flops) {
  wan::v1::StagePart& part = *stage.add_parts();
  part.set_name(name);
  part.set_start_seconds(start);
  part.set_seconds(seconds);
  if (flops > 0) part.set_flops(flops);
}

// A job of 20 s on a card: texts 1 s, four steps of 3 s with two forwards of 1.4 s each, decoding 4
// s, one more second until the file is written, and 2 s in no stage.
inline wan::v1::JobReport GpuReport() {
  wan::v1::JobReport report;
  report.set_job("jobs/a1");
  report.set_model("5b");
  report.set_device("cuda:0");
  report.set_dtype("bf16");
  auto& request = *report.mutable_request();
  request.set_width(1280);
  request.set_height(704);
  request.set_num_frames(100);
  request.set_steps(4);
  request.set_seed(42);
  request.set_vae_precision(wan::v1::VAE_PRECISION_FP16);
  auto& system = *report.mutable_system();
  system.set_server_version("1.2.3");
  system.set_cpu_name("Test CPU");
  auto& gpu = *system.mutable_gpu();
  gpu.set_name("NVIDIA Test");
  gpu.set_memory_total_bytes(40 * kGiB);
  gpu.set_power_limit_watts(700);
  auto& plan = *report.mutable_plan();
  plan.set_guided(true);
  plan.set_blocks(10);
  plan.set_decode_tile_rows(1);
  plan.set_decode_tile_columns(1);
  for (const char* name : {"text_encoder", "transformer", "vae"}) {
    auto& component = *plan.add_components();
    component.set_name(name);
    component.set_residency("resident");
    component.set_weight_bytes(10 * kGiB);
    component.set_dtype("bf16");
  }
  auto& attention = *plan.add_block_operators();
  attention.set_name("self_attention");
  attention.set_flops(20e12);
  attention.set_bytes(1e9);
  auto& products = *plan.add_block_operators();
  products.set_name("feed_forward");
  products.set_flops(30e12);
  products.set_bytes(2e9);
  auto& passes = *plan.add_block_operators();
  passes.set_name("elementwise");
  passes.set_flops(1e9);
  passes.set_bytes(5e9);
  auto& load = *report.mutable_model_load();
  load.set_stage("Model_Initialization");
  load.set_seconds(43.78);

  AddStage(report, "Total_Execution", 0, 20).set_sm_activity_percent(80);
  AddStage(report, "TI2V_Preprocess", 0, 0.001);
  AddStage(report, "T5_Encoding", 0.5, 1);
  for (int i = 0; i < 4; ++i) {
    AddStage(report, absl::StrCat("Step_", i, "_Loading"), 2 + 3 * i, 0.0004);
    auto& step = AddStage(report, absl::StrCat("Step_", i, "_Inference"), 2 + 3 * i, 3);
    step.set_expert("only");
    step.set_sm_activity_percent(99.5);
    step.set_gpu_memory_start_bytes(30 * kGiB);
    step.set_gpu_memory_end_bytes(31 * kGiB);
    step.set_gpu_memory_peak_bytes(36 * kGiB);
    step.set_gpu_weights_peak_bytes(30 * kGiB);
    AddPart(step, "forward_conditional", 0, 1.4, 500e12);
    AddPart(step, "forward_unconditional", 1.4, 1.4, 500e12);
    AddPart(step, "solver", 2.8, 0.1, 0);
    auto& planned = *plan.add_stages();
    planned.set_stage(step.stage());
    planned.set_flops(1000e12);
    planned.set_weight_bytes(30 * kGiB);
    planned.set_activation_bytes(7 * kGiB);
    planned.set_workspace_bytes(kGiB);
  }
  AddStage(report, "VAE_Decoding", 14.5, 4).set_gpu_memory_peak_bytes(33 * kGiB);
  AddStage(report, "Video_Encoding", 15, 4.5);
  return report;
}

// What `wan_bench ceilings` writes on that card.
inline constexpr char kCeilingsJson[] = R"({"format": "wanserve-ceilings", "version": 1,
  "device": "NVIDIA Test", "software": "", "measured_at": "2026-01-01T00:00:00Z", "seconds_each": 1,
  "products_flop_per_second": {"bf16": 600e12, "fp16": 600e12, "tf32": 300e12},
  "attention_flop_per_second": {"bf16": 500e12}, "memory_bytes_per_second": 4e12, "rows": []})";

}  // namespace wan::client::reports
