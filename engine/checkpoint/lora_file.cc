#include "engine/checkpoint/lora_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

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

}  // namespace

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
  if (lora.ok()) lora->files = std::move(files);
  return lora;
}

}  // namespace wan
