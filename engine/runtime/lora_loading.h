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

// The configured LoRAs: their files are mapped and checked against a checkpoint. No weights are
// needed for that, so a bad file is reported before loading takes minutes.
class OpenedLoras {
 public:
  // Opens and checks the files of `sources`. `experts` lists the model's experts in the
  // checkpoint's order. INVALID_ARGUMENT if a source is for an expert that the model does not have,
  // or if one expert has two files of one LoRA; otherwise the errors of ReadLoraFile. Every message
  // names the LoRA.
  static absl::StatusOr<OpenedLoras> Open(const std::vector<LoraSource>& sources,
                                          const Checkpoint& checkpoint,
                                          std::span<const ExpertRole> experts);

  // Each function returns one entry per LoRA, in the order of their names.
  std::vector<PlannedLora> Plan() const;
  std::vector<LoraDescription> Describe() const;

  // The files that were read, in the order of their names.
  const std::vector<ModelFile>& files() const { return files_; }

  // Copies the factors into host memory from which the experts' devices can copy fast. Also makes
  // host copies of the experts' weights, which restore them after a job. Throws
  // c10::OutOfMemoryError if host memory runs out, and StatusException (CANCELLED) after a stop
  // request.
  void AddTo(std::vector<Expert>& experts, const std::stop_token& stop) const;

 private:
  struct Part {
    std::string path;
    std::shared_ptr<const LoraFile> file;  // null: the LoRA does not change this expert
  };
  struct Lora {
    std::string name;
    std::vector<Part> experts;
  };

  Lora& Find(const std::string& name);
  void AddFiles(const LoraSource& source, const LoraFile& lora);
  // Returns the bytes of a LoRA's factors; a factor that several experts share counts once.
  static uint64_t HostBytes(const Lora& lora);

  std::vector<ExpertRole> roles_;  // the model's experts
  std::vector<Lora> loras_;
  std::vector<ModelFile> files_;
};

}  // namespace wan
