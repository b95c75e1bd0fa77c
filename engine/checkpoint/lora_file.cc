#include "engine/checkpoint/lora_file.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/file_problem.h"
#include "engine/checkpoint/lora_alpha.h"
#include "engine/checkpoint/lora_builder.h"
#include "engine/formats/safetensors.h"

namespace wan {
namespace {

constexpr const char kPeftModel[] = "adapter_model.safetensors";
constexpr const char kPeftConfig[] = "adapter_config.json";

// Suggests to the user one of the LoRA files in the folder.
absl::Status NoPeftFolder(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".safetensors") found.push_back(entry->path().string());
  }
  std::sort(found.begin(), found.end());
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": is a folder without ", kPeftModel,
                   ", so PEFT did not write it; give the LoRA's file",
                   found.empty() ? "" : absl::StrCat(", for example ", found.front())));
}

// Returns the names of a file: on disk, and in its metadata, where trainers write its title. Files
// of PEFT and of Wan2.2-Lightning all have the same name, so the folder's name counts instead.
std::vector<std::string> NamesOf(const std::filesystem::path& path, const TensorFile& file) {
  const std::string stem = path.stem().string();
  const bool says_nothing =
      path.filename() == kPeftModel || stem == "high_noise_model" || stem == "low_noise_model";
  std::vector<std::string> names = {(says_nothing ? path.parent_path() : path).filename().string()};
  for (const char* const key : {"modelspec.title", "ss_output_name", "title", "name"}) {
    const auto found = file.metadata.find(key);
    if (found != file.metadata.end()) names.push_back(found->second);
  }
  return names;
}

const char* KindOf(const LoraTerm& term) {
  switch (term.form) {
    case LoraForm::kOne:
      return term.IsDifference() ? "difference" : "LoRA";
    case LoraForm::kHadamard:
      return "LoHa";
    case LoraForm::kKronecker:
      return "LoKr";
  }
  return "";
}

}  // namespace

LoraPartDescription DescribeLora(const LoraFile& file) {
  LoraPartDescription described;
  std::set<std::string> targets;
  std::set<std::string> kinds;
  for (const LoraTerm& term : file.terms) {
    targets.insert(term.target);
    kinds.insert(KindOf(term));
    if (term.magnitude != LoraMagnitude::kNone) kinds.insert("DoRA");
    if (term.IsDifference()) continue;
    described.min_factor = std::min(described.min_factor.value_or(term.factor), term.factor);
    described.max_factor = std::max(described.max_factor.value_or(term.factor), term.factor);
  }
  described.kinds.assign(kinds.begin(), kinds.end());
  described.rank = file.rank;
  described.tensors = static_cast<int64_t>(targets.size());
  described.left_out_tensors = file.left_out;
  return described;
}

std::vector<const StoredTensor*> LoraTerm::Tensors() const {
  std::vector<const StoredTensor*> tensors;
  const StoredTensor* const all[] = {&first.up,    &first.down,   &first.whole, &second.up,
                                     &second.down, &second.whole, &lengths};
  for (const StoredTensor* const tensor : all) {
    if (!tensor->bytes.empty()) tensors.push_back(tensor);
  }
  return tensors;
}

absl::StatusOr<LoraFile> ReadLoraFile(const std::string& path, const TransformerConfig& config) {
  std::error_code ignored;
  std::filesystem::path file_path = path;
  if (std::filesystem::is_directory(file_path, ignored)) {
    file_path /= kPeftModel;
    if (!IsGiven(file_path.string())) return NoPeftFolder(path);
  }
  const absl::StatusOr<TensorFile> file = ReadSafetensors(file_path.string());
  if (!file.ok()) return file.status();
  // adapter_config.json describes this file only if the file has the name that PEFT gives it.
  const std::filesystem::path config_path = file_path.parent_path() / kPeftConfig;
  const bool has_config = file_path.filename() == kPeftModel && IsGiven(config_path.string());
  std::vector<ModelFile> files = {
      {file_path.filename().string(), file->path, file->file->version()}};
  const absl::StatusOr<FileVersion> config_version = FileVersion::Of(config_path.string());
  if (has_config && config_version.ok()) {
    files.push_back({config_path.filename().string(), config_path.string(), *config_version});
  }
  const absl::StatusOr<LoraAlpha> alpha =
      LoraAlpha::Read(*file, has_config ? config_path.string() : "");
  if (!alpha.ok()) return alpha.status();
  absl::StatusOr<LoraFile> lora = BuildLora(*file, config, *alpha);
  if (!lora.ok()) return lora;
  lora->files = std::move(files);
  lora->names = NamesOf(file_path, *file);
  return lora;
}

}  // namespace wan
