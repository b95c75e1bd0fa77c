#include "benchmarks/memory_rows.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiB = 1024.0 * 1024 * 1024;

double InGiB(uint64_t bytes) { return static_cast<double>(bytes) / kGiB; }

double Ratio(const StageRow& stage) {
  return static_cast<double>(stage.estimate) / static_cast<double>(stage.peak);
}

std::string TilesLabel(const GenerationPlan& plan) {
  return absl::StrCat(plan.decode_tiles.rows, "x", plan.decode_tiles.columns);
}

Json ToJson(const MemoryRow& row) {
  Json json = {{"model", row.key.model},
               {"limit_gib", row.key.limit_gib},
               {"shape", row.key.shape},
               {"residency", row.key.residency}};
  if (!row.refusal.empty()) {
    json["refused"] = row.refusal;
    return json;
  }
  for (const ComponentResidency& entry : row.plan.residency) {
    json["policies"][std::string(NameOf(entry.component))] =
        std::string(ResidencyPolicyName(entry.policy));
  }
  json["decode_tiles"] = TilesLabel(row.plan);
  json["batched_guidance"] = row.plan.batched_guidance;
  json["prefetch_experts"] = row.plan.prefetch_experts;
  json["right"] = row.IsRight();
  json["estimate_bytes"] = row.plan.peak_device_bytes;
  json["peak_bytes"] = row.Peak();
  json["reserved_bytes"] = row.reserved;
  json["process_bytes"] = row.process;
  json["retries"] = row.retries;
  json["decodings"] = row.decodings;
  if (!row.failure.empty()) json["failed"] = row.failure;
  json["step_seconds"] = row.step_seconds;
  json["loading_seconds"] = row.loading_seconds;
  json["stages"] = Json::array();
  for (const StageRow& stage : row.stages) {
    json["stages"].push_back({{"stage", NameOf(stage.stage)},
                              {"weight_bytes", stage.weights},
                              {"estimate_bytes", stage.estimate},
                              {"peak_bytes", stage.peak},
                              {"seconds", stage.seconds}});
  }
  return json;
}

}  // namespace

bool StageRow::IsRight() const {
  constexpr double kMostAbove = 1.05;
  return peak > 0 && Ratio(*this) >= 1 && Ratio(*this) <= kMostAbove;
}

uint64_t MemoryRow::Peak() const {
  uint64_t peak = 0;
  for (const StageRow& stage : stages) peak = std::max(peak, stage.peak);
  return peak;
}

bool MemoryRow::IsRight() const {
  if (!refusal.empty()) return true;
  // Without peaks nothing was shown, but on a CPU, which has none.
  return failure.empty() && decodings <= 1 && (process == 0 || !stages.empty()) &&
         std::all_of(stages.begin(), stages.end(),
                     [](const StageRow& stage) { return stage.IsRight(); }) &&
         (key.limit_gib == 0 || InGiB(process) <= key.limit_gib);
}

std::set<RowKey> ReadRowKeys(const std::string& path) {
  std::set<RowKey> keys;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    // The last line may be half a line, where a run was killed.
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("shape") || json.contains("failed")) continue;
    keys.insert({json.value("model", ""), json.value("limit_gib", 0.0), json.value("shape", ""),
                 json.value("residency", "")});
  }
  return keys;
}

absl::Status AppendRow(const std::string& path, const MemoryRow& row) {
  std::ofstream file(path, std::ios::app);
  file << ToJson(row).dump() << std::endl;
  return file.good() ? absl::OkStatus()
                     : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

void PrintRow(const MemoryRow& row) {
  std::printf("%s:", row.key.shape.c_str());
  if (!row.refusal.empty()) {
    std::printf(" refused: %s\n", row.refusal.c_str());
    return;
  }
  for (const ComponentResidency& entry : row.plan.residency) {
    std::printf(" %s=%s", std::string(NameOf(entry.component)).c_str(),
                std::string(ResidencyPolicyName(entry.policy)).c_str());
  }
  std::printf(", tiles %s%s%s\n", TilesLabel(row.plan).c_str(),
              row.plan.batched_guidance ? ", batched" : "",
              row.plan.prefetch_experts ? ", prefetching" : "");
  for (const StageRow& stage : row.stages) {
    std::printf(
        "  %-18s estimate %7.3f GiB (weights %7.3f), peak %7.3f GiB, ratio %.4f, %.3f s%s\n",
        NameOf(stage.stage).c_str(), InGiB(stage.estimate), InGiB(stage.weights), InGiB(stage.peak),
        Ratio(stage), stage.seconds, stage.IsRight() ? "" : "  WRONG");
  }
  std::printf("  allocator kept %.3f GiB, device without %.3f GiB, %ld retries%s\n",
              InGiB(row.reserved), InGiB(row.process), static_cast<long>(row.retries),
              row.IsRight() ? "" : "  WRONG");
  if (!row.failure.empty()) std::printf("  FAILED: %s\n", row.failure.c_str());
  for (size_t i = 0; i < row.step_seconds.size(); ++i) {
    std::printf("  step %zu: loading %.4f s, inference %.3f s\n", i, row.loading_seconds[i],
                row.step_seconds[i]);
  }
  std::fflush(stdout);
}

}  // namespace wan
