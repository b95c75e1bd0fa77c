// Reads a model's LoRAs from their files into host memory.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/lora.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/lora_file.h"
#include "engine/pipeline/expert.h"
#include "engine/planning/planned_model.h"

namespace wan {

// The configured LoRAs, mapped from their files and checked against a checkpoint. Needs no weights,
// so a bad file is reported before minutes of loading.
class OpenedLoras {
 public:
  // Opens the files of `sources`. `experts` lists the model's experts in the checkpoint's order.
  // INVALID_ARGUMENT if a source is for an expert that the model does not have, or if one expert
  // has two files of one name; otherwise the errors of ReadLoraFile. All messages name the LoRA.
  static absl::StatusOr<OpenedLoras> Open(const std::vector<LoraSource>& sources,
                                          const Checkpoint& checkpoint,
                                          std::span<const ExpertRole> experts);

  // Each returns one entry per name.
  std::vector<PlannedLora> Plan() const;
  std::vector<LoraDescription> Describe() const;

  // The files that were read, sorted by name.
  const std::vector<ModelFile>& files() const { return files_; }

  // Copies the factors into host memory from which the experts' devices copy fast, and makes host
  // copies of the experts' weights, which restore them after a job. Throws c10::OutOfMemoryError if
  // there is no memory, and StatusException (CANCELLED) after a stop request.
  void AddTo(std::vector<Expert>& experts, const std::stop_token& stop) const;

 private:
  struct Part {
    std::string path;
    std::shared_ptr<const LoraFile> file;  // null: this expert is not changed
  };
  struct Lora {
    std::string name;
    std::vector<Part> experts;
  };

  Lora& Find(const std::string& name);
  void AddFiles(const LoraSource& source, const LoraFile& lora);
  // Returns the bytes of a LoRA's factors; factors that experts share count once.
  static uint64_t HostBytes(const Lora& lora);

  std::vector<ExpertRole> roles_;  // experts of the model
  std::vector<Lora> loras_;
  std::vector<ModelFile> files_;
};

}  // namespace wan
