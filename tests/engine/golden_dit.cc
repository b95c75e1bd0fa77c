#include "tests/engine/golden_dit.h"

#include <ATen/ops/cat.h>

#include <map>
#include <memory>
#include <stdexcept>

#include "nlohmann/json.hpp"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/raw_tensors.h"

namespace wan {
namespace {

const std::map<std::string, double>& UpstreamBf16Errors() {
  static const std::map<std::string, double> errors{
      {"dit/ti2v-5b_00", 5.77e-03},       {"dit/ti2v-5b_01", 3.74e-03},
      {"dit/ti2v-5b_02", 4.57e-03},       {"dit/t2v-a14b-high_03", 4.32e-03},
      {"dit/t2v-a14b-low_04", 3.83e-03},  {"dit/t2v-a14b-high_05", 3.24e-03},
      {"dit/i2v-a14b-high_06", 3.32e-03}, {"dit/i2v-a14b-low_07", 4.22e-03},
      {"dit/i2v-a14b-high_08", 3.68e-03}, {"dit/t2v-a14b-low_09", 3.86e-03},
      {"dit/ti2v-5b_10", 4.10e-03},       {"dit/ti2v-5b_11", 5.17e-03},
      {"dit/ti2v-5b_12", 4.33e-03}};
  return errors;
}

GoldenDitCase LoadCase(const nlohmann::json& record) {
  const std::string file = record["file"];
  GoldenDitCase result;
  result.id = record["id"];
  result.checkpoint = record["checkpoint"];
  result.expert = record["expert"].is_string() && record["expert"] == "low" ? 1 : 0;
  result.bf16_error = UpstreamBf16Errors().at(result.id);
  result.timestep = LoadGolden(file, "timestep");
  result.output = LoadGolden(file, "output");
  const int64_t batch = record["parameters"]["batch"];
  result.latents = LoadGolden(file, "latents");
  if (record["keys"].contains("y")) {
    result.latents = at::cat({result.latents, LoadGolden(file, "y")});
  }
  // The same latents for every entry.
  result.latents = at::cat(std::vector<at::Tensor>(batch, result.latents.unsqueeze(0)));
  for (int64_t i = 0; i < batch; ++i) {
    result.contexts.push_back(LoadGolden(file, "context_" + std::to_string(i)));
  }
  return result;
}

}  // namespace

std::vector<GoldenDitCase> LoadGoldenDitCases() {
  const nlohmann::json json = nlohmann::json::parse(ReadFileBytes(GoldenDir() + "/cases.json"));
  std::vector<GoldenDitCase> cases;
  for (const nlohmann::json& record : json["cases"]) {
    if (record["kind"] == "dit") cases.push_back(LoadCase(record));
  }
  return cases;
}

const Checkpoint& GoldenCheckpoint(const std::string& layout) {
  static std::map<std::string, std::unique_ptr<Checkpoint>>& opened =
      *new std::map<std::string, std::unique_ptr<Checkpoint>>;
  std::unique_ptr<Checkpoint>& checkpoint = opened[layout];
  if (checkpoint == nullptr) {
    absl::StatusOr<std::unique_ptr<Checkpoint>> result =
        Checkpoint::Open(CheckpointDir() + "/" + layout);
    if (!result.ok()) throw std::runtime_error(result.status().ToString());
    checkpoint = *std::move(result);
  }
  return *checkpoint;
}

}  // namespace wan
