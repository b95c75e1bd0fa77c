#include "server/jobs/model_spec.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/api/model_source.h"

namespace wan::server {
namespace {

constexpr size_t kMaxNameLength = 63;

void CheckName(const std::string& field, const std::string& name,
               std::vector<FieldViolation>& violations) {
  const bool named = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
  if (named && !name.empty() && name.size() <= kMaxNameLength) return;
  violations.push_back({field, absl::StrCat("'", name.substr(0, kMaxNameLength),
                                            "' is not a valid name; must be 1 to ", kMaxNameLength,
                                            " letters, digits, '.', '_' and '-'")});
}

void CheckPath(const std::string& field, const std::string& path, const char* right,
               std::vector<FieldViolation>& violations) {
  if (path.empty()) {
    violations.push_back({field, absl::StrCat("must be ", right)});
  } else if (path.size() > kMaxPathBytes) {
    violations.push_back(
        {field, absl::StrCat("has ", path.size(), " bytes; must have at most ", kMaxPathBytes)});
  } else if (path.find('\0') != std::string::npos) {
    violations.push_back({field, "has a NUL character; must be a path, which has none"});
  }
}

}  // namespace

absl::Status CheckSpec(const ModelSpec& spec) {
  if (spec.loras.size() > kMaxLorasOfModel) {
    return InvalidFields(
        {{"loras", absl::StrCat("has ", spec.loras.size(), " entries; must have at most ",
                                kMaxLorasOfModel)}});
  }
  std::vector<FieldViolation> violations;
  CheckName("name", spec.name, violations);
  CheckPath("path", spec.path,
            "a checkpoint's folder, files of its parts (KEY=FILE,...) or 'synthetic:FAMILY'",
            violations);
  if (const auto source = ParseModelSource(spec.path); !spec.path.empty() && !source.ok()) {
    violations.push_back({"path", std::string(source.status().message())});
  }
  for (size_t i = 0; i < spec.loras.size(); ++i) {
    const std::string field = absl::StrCat("loras[", i, "]");
    CheckName(field + ".name", spec.loras[i].name, violations);
    CheckPath(field + ".path", spec.loras[i].path, "a safetensors file or a folder that PEFT wrote",
              violations);
  }
  return violations.empty() ? absl::OkStatus() : InvalidFields(violations);
}

void MakeAbsolute(ModelSpec& spec) {
  const auto absolute = [](const std::string& path) {
    std::error_code error;
    const std::filesystem::path full = std::filesystem::absolute(path, error);
    return path.empty() || error ? path : full.lexically_normal().string();
  };
  spec.path = ChangePaths(
      spec.path, [&](std::string_view, const std::string& path) { return absolute(path); });
  for (LoraSource& lora : spec.loras) lora.path = absolute(lora.path);
}

}  // namespace wan::server
