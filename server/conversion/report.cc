#include "server/conversion/report.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "engine/api/utf8.h"
#include "server/conversion/convert.h"

namespace wan::server {
namespace {

wan::v1::GpuDescription ToProto(const GpuFacts& facts) {
  wan::v1::GpuDescription gpu;
  gpu.set_name(ToUtf8(facts.name));
  gpu.set_uuid(facts.uuid);
  if (facts.memory_total_bytes) gpu.set_memory_total_bytes(*facts.memory_total_bytes);
  gpu.set_driver_version(ToUtf8(facts.driver_version));
  if (facts.power_limit_watts) gpu.set_power_limit_watts(*facts.power_limit_watts);
  if (facts.sm_clock_max_mhz) gpu.set_sm_clock_max_mhz(*facts.sm_clock_max_mhz);
  if (facts.memory_clock_max_mhz) gpu.set_memory_clock_max_mhz(*facts.memory_clock_max_mhz);
  gpu.set_has_gpm(facts.has_gpm);
  return gpu;
}

wan::v1::StagePlan ToProto(const StagePlan& stage) {
  wan::v1::StagePlan message;
  message.set_stage(NameOf(stage.stage));
  if (stage.flops) message.set_flops(*stage.flops);
  // The sizes of weights and activations are both 0 only if the plan has no memory figures.
  if (stage.weight_bytes > 0 || stage.activation_bytes > 0) {
    message.set_weight_bytes(stage.weight_bytes);
    message.set_activation_bytes(stage.activation_bytes - stage.workspace_bytes);
    message.set_workspace_bytes(stage.workspace_bytes);
  }
  if (stage.host_bytes > 0) message.set_host_bytes(stage.host_bytes);
  return message;
}

wan::v1::ComponentPlan ComponentOf(const ComponentDescription& description,
                                   const GenerationPlan& plan) {
  wan::v1::ComponentPlan component;
  component.set_name(std::string(NameOf(description.component)));
  component.set_weight_bytes(description.bytes);
  component.set_dtype(description.dtype);
  component.set_parameters(description.parameters);
  const auto residency =
      std::find_if(plan.residency.begin(), plan.residency.end(),
                   [&](const auto& one) { return one.component == description.component; });
  if (residency != plan.residency.end()) {
    component.set_residency(std::string(ResidencyPolicyName(residency->policy)));
  }
  return component;
}

}  // namespace

std::vector<int> ReusedSteps(const GenerationPlan& plan) {
  std::vector<int> reused;
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    if (plan.steps[step].reuses_blocks) reused.push_back(static_cast<int>(step));
  }
  return reused;
}

wan::v1::SystemDescription ToProto(const SystemFacts& facts) {
  wan::v1::SystemDescription system;
  system.set_libtorch_version(facts.libtorch_version);
  system.set_cuda_version(facts.cuda_version);
  system.set_cudnn_version(facts.cudnn_version);
  system.set_cpu_name(ToUtf8(facts.cpu_name));
  system.set_cpu_cores(facts.cpu_cores);
  if (facts.memory_total_bytes) system.set_memory_total_bytes(*facts.memory_total_bytes);
  if (facts.gpu) *system.mutable_gpu() = ToProto(*facts.gpu);
  return system;
}

wan::v1::PlanReport ReportOf(const GenerationPlan& plan, const ModelDescription& model) {
  wan::v1::PlanReport report;
  for (const ComponentDescription& component : model.components) {
    *report.add_components() = ComponentOf(component, plan);
  }
  for (const StagePlan& stage : plan.stages) *report.add_stages() = ToProto(stage);
  report.set_batched_guidance(plan.batched_guidance);
  report.set_eight_bits(plan.eight_bits);
  for (const int step : ReusedSteps(plan)) report.add_reused_steps(step);
  report.mutable_exact_blocks()->Add(plan.exact_blocks.begin(), plan.exact_blocks.end());
  report.set_first_step(plan.first_step);
  report.set_guided(plan.guided);
  report.set_prefetch_experts(plan.prefetch_experts);
  report.set_record_forwards(plan.record_forwards);
  report.set_decode_tile_rows(plan.decode_tiles.rows);
  report.set_decode_tile_columns(plan.decode_tiles.columns);
  report.set_tokens(plan.tokens);
  if (plan.device_memory_bytes > 0) report.set_device_memory_limit_bytes(plan.device_memory_bytes);
  if (plan.peak_device_bytes > 0) report.set_peak_device_bytes(plan.peak_device_bytes);
  if (plan.peak_host_bytes > 0) report.set_peak_host_bytes(plan.peak_host_bytes);
  report.set_blocks(plan.blocks);
  for (const OperatorWork& work : plan.block_operators) {
    wan::v1::OperatorClass& added = *report.add_block_operators();
    added.set_name(std::string(work.name));
    if (work.flops > 0) added.set_flops(work.flops);
    added.set_bytes(work.bytes);
  }
  return report;
}

google::protobuf::RepeatedPtrField<wan::v1::DeviceSample> ToProto(
    std::span<const TimelinePoint> timeline) {
  google::protobuf::RepeatedPtrField<wan::v1::DeviceSample> points;
  points.Reserve(static_cast<int>(timeline.size()));
  for (const TimelinePoint& point : timeline) {
    *points.Add() = ToProto(point.sample, point.start);
  }
  return points;
}

}  // namespace wan::server
