// Reads a model's LoRAs from their files into host memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/lora.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/lora_file.h"
#include "engine/families/model_family.h"
#include "engine/pipeline/expert.h"
#include "engine/planning/planned_model.h"
#include "engine/weights/lora_weights.h"

namespace wan {

// The configured LoRAs. Open maps their files, and checks them against a checkpoint. The checks
// need no weights, so a bad file is reported before minutes of loading. Not thread-safe.
class OpenedLoras {
 public:
  // Opens and checks the files of `sources` for a model of the family. Does not read files again
  // that `known` has and that have not changed since. INVALID_ARGUMENT if a source is for an expert
  // that the model does not have, if one expert has two files of one LoRA, if a schedule is wrong,
  // or if the files of one LoRA have different schedules. Also returns the errors of ReadLoraFile.
  // Every message names the LoRA. If Open refuses a source that the server found in a folder
  // (LoraSource::found), it skips that LoRA. After a stop request, returns CANCELLED before it
  // opens the next file.
  static absl::StatusOr<OpenedLoras> Open(const std::vector<LoraSource>& sources,
                                          const Checkpoint& checkpoint, const ModelFamily& family,
                                          const std::stop_token& stop = {},
                                          const OpenedLoras* known = nullptr);

  // Each function returns one entry per LoRA, in the order of their names.
  std::vector<PlannedLora> Plan() const;
  std::vector<LoraDescription> Describe() const;

  // The files that were read, in the order of their names.
  const std::vector<ModelFile>& files() const { return files_; }
  // The sources of LoRAs that were skipped, in their order.
  const std::vector<SkippedLora>& skipped() const { return skipped_; }

  // Returns the bytes of host memory for factors that AddTo still has to copy.
  uint64_t MissingBytes() const;
  // Returns whether some LoRA changes the expert with this index.
  bool Changes(size_t expert) const;

  // Adds the LoRAs to the experts' libraries, and makes libraries where they are missing. Copies
  // missing factors into host memory from which the experts' devices can copy fast. Also makes host
  // copies of the experts' weights, from which the weights are restored after a job. Throws
  // c10::OutOfMemoryError if host memory runs out, and StatusException (CANCELLED) after a stop
  // request.
  void AddTo(std::vector<Expert>& experts, const std::stop_token& stop);

 private:
  // A file that was read; experts and models that use the same file share it.
  struct Reading {
    LoraFile file;
    std::shared_ptr<const LoraWeights> weights;  // null until AddTo has copied the factors
  };
  struct Part {
    std::string path;
    std::shared_ptr<Reading> reading;  // null: the LoRA does not change this expert
  };
  struct Lora {
    std::string name;
    std::vector<Part> experts;
    std::optional<LoraSchedule> schedule = {};  // 0 steps: the operator turned the schedule off
    bool is_recognised = false;
  };

  Lora& Find(const std::string& name);
  // Opens one source. Returns an error without the LoRA's name.
  absl::Status Add(const LoraSource& source, const Checkpoint& checkpoint,
                   const ModelFamily& family, const OpenedLoras* known);
  // Returns the reading of a source that is still valid; null if there is none.
  std::shared_ptr<Reading> StillValid(const LoraSource& source, size_t expert) const;
  // Removes the LoRA `name`, and records its sources with the error of one source.
  void Skip(const std::vector<LoraSource>& sources, const std::string& name,
            const absl::Status& error);
  bool IsSkipped(const std::string& name) const;
  // Gives each published LoRA without a schedule the schedule that RecogniseSchedule returns.
  void Recognise(const Checkpoint& checkpoint);
  void AddFiles(const LoraSource& source, const LoraFile& lora);
  // Returns the bytes of a LoRA's factors; a factor that several experts share counts once.
  static uint64_t HostBytes(const Lora& lora);

  std::vector<ExpertRole> roles_;  // the model's experts
  std::vector<Lora> loras_;
  std::vector<ModelFile> files_;
  std::vector<SkippedLora> skipped_;
};

}  // namespace wan
