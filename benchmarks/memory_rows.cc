#include "benchmarks/memory_rows.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

using Json = nlohmann::ordered_json;

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
  // A row without peaks proves nothing. Peaks are missing only on a CPU.
  return failure.empty() && decodings <= 1 && (process == 0 || !stages.empty()) &&
         std::all_of(stages.begin(), stages.end(),
                     [](const StageRow& stage) { return stage.IsRight(); }) &&
         (key.limit_gib == 0 || InGiB(process) <= key.limit_gib);
}

std::set<RowKey> ReadRowKeys(const std::string& path) {
  std::set<RowKey> keys;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    // If the previous run was killed, its last line may be incomplete.
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

absl::Status AddRows(const MemoryRow& row, Session& session) {
  std::string name = absl::StrCat(row.key.model, " ", row.key.shape);
  if (row.key.limit_gib > 0) absl::StrAppend(&name, ", ", row.key.limit_gib, " GiB");
  if (!row.key.residency.empty()) absl::StrAppend(&name, ", ", row.key.residency);
  if (!row.refusal.empty()) {
    return session.Add({.name = name, .figures = {{"refused", row.refusal}}});
  }
  for (const StageRow& stage : row.stages) {
    BenchRow line{.name = absl::StrCat(name, ": ", NameOf(stage.stage)),
                  .timing = Timing{stage.seconds, stage.seconds, stage.seconds, 1}};
    line.figures = {{"estimate_gib", InGiB(stage.estimate)},
                    {"weights_gib", InGiB(stage.weights)},
                    {"peak_gib", InGiB(stage.peak)},
                    {"estimate_to_peak", Ratio(stage)},
                    {"right", stage.IsRight()}};
    if (absl::Status status = session.Add(std::move(line)); !status.ok()) return status;
  }
  for (size_t i = 0; i < row.step_seconds.size(); ++i) {
    const double seconds = row.step_seconds[i];
    BenchRow line{.name = absl::StrCat(name, ": step ", i),
                  .timing = Timing{seconds, seconds, seconds, 1}};
    line.figures = {{"loading_seconds", row.loading_seconds[i]}};
    if (absl::Status status = session.Add(std::move(line)); !status.ok()) return status;
  }
  BenchRow whole{.name = absl::StrCat(name, ": whole job")};
  for (const ComponentResidency& entry : row.plan.residency) {
    whole.figures.push_back(
        {std::string(NameOf(entry.component)), std::string(ResidencyPolicyName(entry.policy))});
  }
  whole.figures.push_back({"decode_tiles", TilesLabel(row.plan)});
  whole.figures.push_back({"batched_guidance", row.plan.batched_guidance});
  whole.figures.push_back({"prefetch_experts", row.plan.prefetch_experts});
  whole.figures.push_back({"allocator_kept_gib", InGiB(row.reserved)});
  whole.figures.push_back({"device_without_gib", InGiB(row.process)});
  whole.figures.push_back({"retries", row.retries});
  whole.figures.push_back({"right", row.IsRight()});
  if (!row.failure.empty()) whole.figures.push_back({"failed", row.failure});
  return session.Add(std::move(whole));
}

}  // namespace wan
