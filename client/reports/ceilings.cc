// nlohmann/json takes seconds to compile; this file and render_json.cc are the only ones of the
// room that include it.
#include "client/reports/ceilings.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "proto/enum_words.h"

namespace wan::client::reports {
namespace {

using Json = nlohmann::json;

double RateOf(const std::map<std::string, double>& rates, const std::string& precision) {
  const auto found = rates.find(precision);
  return found == rates.end() ? 0 : found->second;
}

bool IsAttention(const wan::v1::OperatorClass& operators) {
  return operators.name().ends_with("attention");
}

}  // namespace

absl::StatusOr<Ceilings> ParseCeilings(std::string_view json, const std::string& name) {
  const auto refused = [&name](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has no ceilings: ", why,
                     "; 'wan_bench ceilings --output FILE' writes such a file"));
  };
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return refused("it is not a JSON object");
  if (root.value("format", Json()) != "wanserve-ceilings" || root.value("version", Json()) != 1) {
    return refused("its format is not wanserve-ceilings of version 1");
  }
  Ceilings ceilings;
  std::string field;
  try {
    const auto read = [&](const char* key, auto& value) {
      field = key;
      root.at(key).get_to(value);
    };
    read("device", ceilings.device);
    read("measured_at", ceilings.measured_at);
    read("products_flop_per_second", ceilings.products);
    read("attention_flop_per_second", ceilings.attention);
    read("memory_bytes_per_second", ceilings.memory);
  } catch (const Json::exception&) {
    return refused(absl::StrCat("its field ", field, " is missing or of another type"));
  }
  return ceilings;
}

absl::StatusOr<Ceilings> ReadCeilings(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::NotFoundError(absl::StrCat(
        path,
        " cannot be read; 'wan_bench ceilings --output FILE' measures this machine's ceilings"));
  }
  return ParseCeilings(text.str(), path);
}

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

std::optional<double> FloorSeconds(const Ceilings& ceilings,
                                   const wan::v1::OperatorClass& operators,
                                   const std::string& precision) {
  const double rate =
      RateOf(IsAttention(operators) ? ceilings.attention : ceilings.products, precision);
  double seconds = 0;
  // Operators that only move data have so few FLOPs that their bytes decide.
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
                                   const std::string& precision, double flops) {
  double block_flops = 0, block_floor = 0;
  for (const wan::v1::OperatorClass& operators : plan.block_operators()) {
    block_flops += operators.flops();
    // The floor leaves out passes over memory, which may be fused.
    if (operators.name() == "elementwise") continue;
    const std::optional<double> floor = FloorSeconds(ceilings, operators, precision);
    if (!floor) return std::nullopt;
    block_floor += *floor;
  }
  if (block_flops <= 0) return ProductFloor(ceilings, precision, flops);
  return flops / block_flops * block_floor;
}

std::optional<double> ProductFloor(const Ceilings& ceilings, const std::string& precision,
                                   double flops) {
  const double rate = RateOf(ceilings.products, precision);
  if (rate <= 0 || flops <= 0) return std::nullopt;
  return flops / rate;
}

std::string VaePrecision(const wan::v1::JobReport& report) {
  return std::string(WordOf(report.request().vae_precision()));
}

}  // namespace wan::client::reports
