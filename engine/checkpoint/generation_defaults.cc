#include "engine/checkpoint/generation_defaults.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/file_problem.h"
#include "engine/checkpoint/json_config.h"
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
  return ReadJsonConfig<GenerationDefaults>(path, problems, [](JsonFields& fields) {
    GenerationDefaults defaults;
    for (const std::string& key : fields.Keys()) {
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
    return std::optional(defaults);
  });
}

}  // namespace wan
