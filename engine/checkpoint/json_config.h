// Reads a JSON file of a checkpoint into a config struct. Include it only from .cc files, because
// it pulls in all of nlohmann/json.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/config_limits.h"
#include "engine/formats/json_text.h"

namespace wan {

// Reads the file and returns the config that `read` makes from its fields. Appends the problems of
// the file or of its fields to `problems`, and returns nullopt if there are any. `read` returns
// nullopt without a problem if the file has no such config.
template <typename Config>
std::optional<Config> ReadJsonConfig(
    const std::string& path, std::vector<absl::Status>& problems,
    absl::FunctionRef<std::optional<Config>(JsonFields& fields)> read) {
  const absl::StatusOr<nlohmann::json> json = ReadJsonObject(path);
  if (!json.ok()) {
    problems.push_back(json.status());
    return std::nullopt;
  }
  JsonFields fields(*json, path);
  std::optional<Config> config = read(fields);
  problems.insert(problems.end(), fields.problems().begin(), fields.problems().end());
  return fields.problems().empty() ? config : std::nullopt;
}

// Adds contradictions between the dimensions as problems if all fields could be read.
template <typename Config>
void AddContradictions(const Config& config, JsonFields& fields) {
  if (!fields.problems().empty()) return;
  for (const std::string& what : Contradictions(config)) fields.AddProblem(what);
}

}  // namespace wan
