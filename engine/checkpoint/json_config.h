// Reads a JSON file of a checkpoint into a struct. Include this header only in .cc files, because
// it includes all of nlohmann/json.
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

// Reads the file, and returns the config that `read` makes from its fields. If the file or its
// fields have problems, appends them to `problems` and returns nullopt. `read` returns nullopt
// without a problem if the file holds no config of this kind.
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

// If all fields could be read, adds contradictions between the dimensions as problems.
template <typename Config>
void AddContradictions(const Config& config, JsonFields& fields) {
  if (!fields.problems().empty()) return;
  for (const std::string& what : Contradictions(config)) fields.AddProblem(what);
}

}  // namespace wan
