#include "client/reports/ceilings.h"

#include <algorithm>
#include <string_view>

#include "proto/enum_words.h"

namespace wan::client::reports {
namespace {

bool IsAttention(const wan::v1::OperatorClass& operators) {
  return operators.name().ends_with("attention");
}

// Returns the precision of the operators' inputs.
std::string PrecisionOf(const wan::v1::OperatorClass& operators, const wan::v1::PlanReport& plan,
                        const std::string& dtype) {
  // Attention to the text is never computed in 8 bits.
  return operators.name() == "cross_attention" ? dtype : BlockPrecision(plan, dtype);
}

}  // namespace

const std::string& DeviceNameOf(const wan::v1::JobReport& report) {
  const std::string& gpu = report.system().gpu().name();
  return gpu.empty() ? report.system().cpu_name() : gpu;
}

bool AreOf(const Ceilings& ceilings, const wan::v1::JobReport& report) {
  return ceilings.device == DeviceNameOf(report);
}

const Ceilings* FindCeilings(const std::vector<Ceilings>& ceilings,
                             const wan::v1::JobReport& report) {
  const auto found = std::find_if(ceilings.begin(), ceilings.end(), [&](const Ceilings& candidate) {
    return AreOf(candidate, report);
  });
  return found == ceilings.end() ? nullptr : &*found;
}

std::string BlockPrecision(const wan::v1::PlanReport& plan, const std::string& dtype) {
  return plan.eight_bits() ? "fp8" : dtype;
}

std::optional<double> FloorSeconds(const Ceilings& ceilings,
                                   const wan::v1::OperatorClass& operators,
                                   const wan::v1::PlanReport& plan, const std::string& dtype) {
  const double rate = RateOf(IsAttention(operators) ? ceilings.attention : ceilings.products,
                             PrecisionOf(operators, plan, dtype));
  double seconds = 0;
  // Elementwise operators have so few FLOPs that only their bytes matter.
  if (operators.flops() > 0 && operators.name() != "elementwise") {
    if (rate <= 0) return std::nullopt;
    seconds = operators.flops() / rate;
  }
  if (operators.bytes() > 0 && ceilings.memory > 0) {
    seconds = std::max(seconds, operators.bytes() / ceilings.memory);
  }
  if (seconds <= 0) return std::nullopt;
  return seconds;
}

std::optional<double> ForwardFloor(const Ceilings& ceilings, const wan::v1::PlanReport& plan,
                                   const std::string& dtype, double flops) {
  double block_flops = 0, block_floor = 0;
  for (const wan::v1::OperatorClass& operators : plan.block_operators()) {
    block_flops += operators.flops();
    // Leave out elementwise operators, because they may be fused with others.
    if (operators.name() == "elementwise") continue;
    const std::optional<double> floor = FloorSeconds(ceilings, operators, plan, dtype);
    if (!floor) return std::nullopt;
    block_floor += *floor;
  }
  if (block_flops <= 0) return ProductFloor(ceilings, dtype, flops);
  return flops / block_flops * block_floor;
}

std::optional<double> ProductFloor(const Ceilings& ceilings, const std::string& precision,
                                   double flops) {
  const double rate = RateOf(ceilings.products, precision);
  if (rate <= 0 || flops <= 0) return std::nullopt;
  return flops / rate;
}

std::string QualityOf(const wan::v1::JobReport& report) {
  const std::string_view word = WordOf(report.request().quality());
  return std::string(word.empty() ? kExactQuality : word);
}

std::string VaePrecision(const wan::v1::JobReport& report) {
  return std::string(WordOf(report.request().vae_precision()));
}

}  // namespace wan::client::reports
