// Finds the LoRAs in the folders that the operator names (the setting lora_dirs).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/lora.h"

namespace wan::server {

// Immutable and thread-safe.
class LoraFolders {
 public:
  struct Folder {
    std::string model;  // empty: the LoRAs are for every model
    std::string path;
  };
  // The schedules of LoRAs, by model (empty: every model) and name.
  using Schedules = std::map<std::pair<std::string, std::string>, LoraSchedule>;

  LoraFolders() = default;
  LoraFolders(std::vector<Folder> folders, Schedules schedules)
      : folders_(std::move(folders)), schedules_(std::move(schedules)) {}

  // Lists the LoRAs in the folders of a model. A file NAME.safetensors, or a folder NAME that PEFT
  // wrote, is the LoRA NAME; the files NAME@high and NAME@low are the LoRA NAME for the two
  // experts. Two files also form a pair if their names differ only in "high" and "low", or in
  // "high_noise" and "low_noise"; a folder with two such files is the LoRA with the folder's name.
  // Find replaces characters that names cannot have by '_'. If several folders have a LoRA of one
  // name, the files of the first folder count; if a pair and a single file have one name, the pair
  // counts. The result is sorted by name and has each name and expert once. Fails with
  // FAILED_PRECONDITION if a folder cannot be read.
  absl::StatusOr<std::vector<LoraSource>> Find(std::string_view model) const;

  struct UnusedSchedule {
    std::string model;  // empty: the schedule is for every model
    std::string name;
    std::vector<std::string> known;  // the LoRAs of the model, or of all models
  };
  // Returns the schedules whose names belong to no LoRA, neither in `models` nor in a folder. Fails
  // with FAILED_PRECONDITION if a folder cannot be read.
  absl::StatusOr<std::vector<UnusedSchedule>> FindUnused(
      const std::vector<ModelSpec>& models) const;

 private:
  std::vector<Folder> folders_;
  Schedules schedules_;
};

}  // namespace wan::server
