// A model's LoRAs from their files into host memory.
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

// The registered LoRAs as their files have them, mapped and checked against a checkpoint. No
// weights are needed for that, so that a bad file is told before a model is loaded for minutes.
class OpenedLoras {
 public:
  // `experts` are in the checkpoint's order. INVALID_ARGUMENT for an expert that
  // the model has not, or a name that has two files for one expert; for the files what ReadLoraFile
  // says of them. All messages name the LoRA.
  static absl::StatusOr<OpenedLoras> Open(const std::vector<LoraSource>& sources,
                                          const Checkpoint& checkpoint,
                                          std::span<const ExpertRole> experts);

  // By name.
  std::vector<PlannedLora> Plan() const;
  std::vector<LoraDescription> Describe() const;

  // Copies the factors into memory that the experts' devices copy fast, and keeps the weights of
  // experts that have LoRAs in host memory, too, from where a job's end restores them. Throws
  // c10::OutOfMemoryError, and StatusException, CANCELLED, after a stop request.
  void AddTo(std::vector<Expert>& experts, const std::stop_token& stop) const;

 private:
  struct Part {
    std::string path;
    std::shared_ptr<const LoraFile> file;  // null: it does not change this expert
  };
  struct Lora {
    std::string name;
    std::vector<Part> experts;
  };

  Lora& Find(const std::string& name);
  // Experts that share a file share its factors.
  static uint64_t HostBytes(const Lora& lora);

  std::vector<ExpertRole> roles_;  // the model's experts
  std::vector<Lora> loras_;
};

}  // namespace wan
