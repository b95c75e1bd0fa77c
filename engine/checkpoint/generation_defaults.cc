#include "engine/checkpoint/generation_defaults.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/file_problem.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/json_text.h"

namespace wan {
namespace {

using Read = std::function<void(JsonFields&, const char* key, GenerationDefaults&)>;

Read Whole(std::optional<int> GenerationDefaults::*member) {
  return [member](JsonFields& fields, const char* key, GenerationDefaults& defaults) {
    defaults.*member = static_cast<int>(fields.Integer(key, 1, std::numeric_limits<int>::max()));
  };
}

Read Text(std::optional<std::string> GenerationDefaults::*member) {
  return [member](JsonFields& fields, const char* key, GenerationDefaults& defaults) {
    defaults.*member = fields.Text(key);
  };
}

const std::map<std::string, Read>& Members() {
  static const auto* const kMembers = new std::map<std::string, Read>{
      {"width", Whole(&GenerationDefaults::width)},
      {"height", Whole(&GenerationDefaults::height)},
      {"num_frames", Whole(&GenerationDefaults::num_frames)},
      {"fps", Whole(&GenerationDefaults::fps)},
      {"steps", Whole(&GenerationDefaults::steps)},
      {"guidance_scale",
       [](JsonFields& fields, const char* key, GenerationDefaults& defaults) {
         defaults.guidance_scale = fields.Numbers(key);
       }},
      {"shift", [](JsonFields& fields, const char* key,
                   GenerationDefaults& defaults) { defaults.shift = fields.Number(key); }},
      {"solver", Text(&GenerationDefaults::solver)},
      {"negative_prompt", Text(&GenerationDefaults::negative_prompt)},
  };
  return *kMembers;
}

}  // namespace

std::optional<GenerationDefaults> ReadGenerationDefaults(const std::string& path,
                                                         std::vector<absl::Status>& problems) {
  if (!IsGiven(path)) return std::nullopt;
  const absl::StatusOr<nlohmann::json> json = ReadJsonObject(path);
  if (!json.ok()) {
    problems.push_back(json.status());
    return std::nullopt;
  }
  JsonFields fields(*json, path);
  GenerationDefaults defaults;
  for (const auto& [key, value] : json->items()) {
    const auto member = Members().find(key);
    if (member != Members().end()) {
      member->second(fields, key.c_str(), defaults);
      continue;
    }
    std::vector<std::string> known;
    for (const auto& [name, read] : Members()) known.push_back(name);
    fields.AddProblem(absl::StrCat("\"", Printable(key), "\" is unknown; expected one of ",
                                   absl::StrJoin(known, ", ")));
  }
  problems.insert(problems.end(), fields.problems().begin(), fields.problems().end());
  return fields.problems().empty() ? std::optional(defaults) : std::nullopt;
}

}  // namespace wan
