#include "engine/runtime/lora_loading.h"

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/model_file.h"
#include "engine/checkpoint/known_loras.h"
#include "engine/planning/lora_schedule.h"

namespace wan {
namespace {

absl::Status Named(const LoraSource& source, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("LoRA '", source.name, "': ", status.message()));
}

std::string Name(ExpertRole expert) { return std::string(NameOf(expert)); }

std::string Names(std::span<const ExpertRole> experts) {
  return absl::StrJoin(experts, ", ",
                       [](std::string* out, ExpertRole expert) { out->append(NameOf(expert)); });
}

// Makes host copies of weights, and frees them again unless Keep is called: an expert of a model
// whose LoRAs could not all be added keeps none that it did not have.
class NewHostCopies {
 public:
  NewHostCopies() = default;
  ~NewHostCopies() {
    for (ComponentWeights* const weights : made_) weights->FreeHostCopy();
  }
  NewHostCopies(const NewHostCopies&) = delete;
  NewHostCopies& operator=(const NewHostCopies&) = delete;

  void Make(ComponentWeights& weights, const std::stop_token& stop) {
    if (weights.HostBytes() == 0) made_.push_back(&weights);
    weights.KeepHostCopy(stop);
  }
  void Keep() { made_.clear(); }

 private:
  std::vector<ComponentWeights*> made_;
};

}  // namespace

absl::StatusOr<OpenedLoras> OpenedLoras::Open(const std::vector<LoraSource>& sources,
                                              const Checkpoint& checkpoint,
                                              const ModelFamily& family,
                                              const std::stop_token& stop,
                                              const OpenedLoras* known) {
  OpenedLoras opened;
  opened.roles_.assign(family.experts.begin(), family.experts.end());
  for (const LoraSource& source : sources) {
    if (stop.stop_requested()) {
      return absl::CancelledError("the loading of LoRAs was stopped on request");
    }
    if (opened.IsSkipped(source.name)) continue;
    const absl::Status status = opened.Add(source, checkpoint, family, known);
    if (status.ok()) continue;
    if (!source.found) return Named(source, status);
    opened.Skip(sources, source.name, Named(source, status));
  }
  for (const Lora& lora : opened.loras_) {
    for (const LoraSource& source : sources) {
      if (source.name != lora.name) continue;
      for (const Part& part : lora.experts) {
        if (part.reading != nullptr && part.path == source.path) {
          opened.AddFiles(source, part.reading->file);
        }
      }
    }
  }
  opened.Recognise(checkpoint);
  return opened;
}

absl::Status OpenedLoras::Add(const LoraSource& source, const Checkpoint& checkpoint,
                              const ModelFamily& family, const OpenedLoras* known) {
  const std::span<const ExpertRole> experts = family.experts;
  if (source.expert.has_value() &&
      std::find(experts.begin(), experts.end(), *source.expert) == experts.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.path, " is for the expert '", Name(*source.expert),
                     "', which the model does not have; its experts are: ", Names(experts)));
  }
  Lora& lora = Find(source.name);
  if (source.schedule.has_value()) {
    absl::Status sound = CheckLoraSchedule(*source.schedule, family);
    if (!sound.ok()) return sound;
    if (lora.schedule.has_value() && lora.schedule != source.schedule) {
      return absl::InvalidArgumentError("has two files with different schedules; give them one");
    }
    lora.schedule = source.schedule;
  }
  std::shared_ptr<Reading> shared;  // experts of equal dimensions share one reading of the file
  for (size_t i = 0; i < experts.size(); ++i) {
    if (source.expert.has_value() && source.expert != experts[i]) continue;
    const int expert = static_cast<int>(i);
    Part& part = lora.experts[i];
    if (part.reading != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("has two files for the expert '",
                                                     Name(experts[i]), "', ", part.path, " and ",
                                                     source.path, "; keep one"));
    }
    const TransformerConfig& config = checkpoint.transformer_config(expert);
    if (shared == nullptr || config != checkpoint.transformer_config(expert - 1)) {
      shared = known == nullptr ? nullptr : known->StillValid(source, i);
      if (shared == nullptr) {
        absl::StatusOr<LoraFile> file = ReadLoraFile(source.path, config);
        if (!file.ok()) return file.status();
        shared = std::make_shared<Reading>(Reading{*std::move(file), nullptr});
      }
    }
    part = {source.path, shared};
  }
  return absl::OkStatus();
}

std::shared_ptr<OpenedLoras::Reading> OpenedLoras::StillValid(const LoraSource& source,
                                                              size_t expert) const {
  for (const Lora& lora : loras_) {
    const Part& part = lora.experts[expert];
    if (part.reading == nullptr || part.path != source.path) continue;
    const std::vector<ModelFile>& files = part.reading->file.files;
    const bool unchanged = std::all_of(files.begin(), files.end(), [](const ModelFile& file) {
      const absl::StatusOr<FileVersion> version = FileVersion::Of(file.path);
      return version.ok() && *version == file.version;
    });
    if (unchanged) return part.reading;
  }
  return nullptr;
}

bool OpenedLoras::IsSkipped(const std::string& name) const {
  return std::any_of(skipped_.begin(), skipped_.end(),
                     [&](const SkippedLora& lora) { return lora.name == name; });
}

void OpenedLoras::Skip(const std::vector<LoraSource>& sources, const std::string& name,
                       const absl::Status& error) {
  std::erase_if(loras_, [&](const Lora& lora) { return lora.name == name; });
  for (const LoraSource& source : sources) {
    if (source.name == name) skipped_.push_back({name, source.path, error});
  }
}

void OpenedLoras::Recognise(const Checkpoint& checkpoint) {
  if (roles_.size() < 2) return;  // the published LoRAs are for models with two experts
  for (Lora& lora : loras_) {
    if (lora.schedule.has_value()) continue;
    std::optional<LoraSchedule> recognised;
    bool all = true;
    for (size_t i = 0; i < lora.experts.size(); ++i) {
      if (lora.experts[i].reading == nullptr) continue;
      recognised = RecogniseSchedule(lora.experts[i].reading->file,
                                     checkpoint.transformer_config(static_cast<int>(i)));
      all = all && recognised.has_value();
    }
    if (!all) continue;
    lora.schedule = recognised;
    lora.is_recognised = recognised.has_value();
  }
}

void OpenedLoras::AddFiles(const LoraSource& source, const LoraFile& lora) {
  // A LoRA's files for two experts may have the same file name in different folders.
  const std::string folder = source.expert.has_value()
                                 ? absl::StrCat("loras/", source.name, "/", Name(*source.expert))
                                 : absl::StrCat("loras/", source.name);
  for (const ModelFile& file : lora.files) {
    ModelFile added{absl::StrCat(folder, "/", file.name), file.path, file.version};
    const auto place = std::lower_bound(
        files_.begin(), files_.end(), added.name,
        [](const ModelFile& other, const std::string& name) { return other.name < name; });
    // Lists a file only once, even if it was read twice because the experts have different
    // dimensions.
    if (place == files_.end() || place->name != added.name) files_.insert(place, std::move(added));
  }
}

OpenedLoras::Lora& OpenedLoras::Find(const std::string& name) {
  for (Lora& lora : loras_) {
    if (lora.name == name) return lora;
  }
  loras_.push_back({name, std::vector<Part>(roles_.size())});
  return loras_.back();
}

uint64_t OpenedLoras::HostBytes(const Lora& lora) {
  std::set<const Reading*> readings;
  for (const Part& part : lora.experts) readings.insert(part.reading.get());
  uint64_t bytes = 0;
  for (const Reading* const reading : readings) {
    bytes += reading == nullptr ? 0 : reading->file.bytes;
  }
  return bytes;
}

uint64_t OpenedLoras::MissingBytes() const {
  std::set<const Reading*> missing;
  for (const Lora& lora : loras_) {
    for (const Part& part : lora.experts) {
      if (part.reading != nullptr && part.reading->weights == nullptr) {
        missing.insert(part.reading.get());
      }
    }
  }
  uint64_t bytes = 0;
  for (const Reading* const reading : missing) bytes += reading->file.bytes;
  return bytes;
}

bool OpenedLoras::Changes(size_t expert) const {
  return std::any_of(loras_.begin(), loras_.end(),
                     [&](const Lora& lora) { return lora.experts[expert].reading != nullptr; });
}

std::vector<PlannedLora> OpenedLoras::Plan() const {
  std::vector<PlannedLora> planned;
  for (const Lora& lora : loras_) {
    PlannedLora& added = planned.emplace_back();
    added.name = lora.name;
    added.host_bytes = HostBytes(lora);
    if (lora.schedule.has_value() && lora.schedule->steps > 0) added.schedule = lora.schedule;
    for (const Part& part : lora.experts) {
      added.experts.push_back(
          part.reading == nullptr ? std::nullopt : std::optional(FootprintOf(part.reading->file)));
    }
  }
  return planned;
}

std::vector<LoraDescription> OpenedLoras::Describe() const {
  std::vector<LoraDescription> descriptions;
  for (const Lora& lora : loras_) {
    LoraDescription& added = descriptions.emplace_back();
    added.name = lora.name;
    added.host_bytes = HostBytes(lora);
    if (lora.schedule.has_value() && lora.schedule->steps > 0) added.schedule = lora.schedule;
    added.is_recognised = lora.is_recognised;
    for (size_t i = 0; i < lora.experts.size(); ++i) {
      const Part& part = lora.experts[i];
      if (part.reading == nullptr) continue;
      LoraPartDescription& described = added.parts.emplace_back(DescribeLora(part.reading->file));
      described.expert = roles_[i];
      described.path = part.path;
    }
  }
  return descriptions;
}

void OpenedLoras::AddTo(std::vector<Expert>& experts, const std::stop_token& stop) {
  NewHostCopies copies;
  // Read all files before making host copies, which would be useless if reading a file fails.
  for (const Lora& lora : loras_) {
    for (size_t i = 0; i < lora.experts.size(); ++i) {
      Reading* const reading = lora.experts[i].reading.get();
      if (reading == nullptr || reading->weights != nullptr) continue;
      const c10::DeviceGuard on_its_device(experts[i].device);
      reading->weights = LoraWeights::Load(reading->file, experts[i].weights->mover(), stop);
    }
  }
  for (const Lora& lora : loras_) {
    for (size_t i = 0; i < lora.experts.size(); ++i) {
      Reading* const reading = lora.experts[i].reading.get();
      if (reading == nullptr) continue;
      Expert& expert = experts[i];
      const c10::DeviceGuard on_its_device(expert.device);
      if (expert.loras == nullptr) {
        expert.loras = std::make_shared<LoraLibrary>();
        // Weights with the policy disk need no copy: they are read again instead of restored.
        if (expert.weights->home() != ComponentWeights::Home::kDisk) {
          copies.Make(*expert.weights, stop);
        }
      }
      expert.loras->Add(lora.name, reading->weights);
      for (ExpertReplica& replica : expert.replicas) {
        if (replica.loras == nullptr) {
          const c10::DeviceGuard on_device(replica.device);
          replica.loras = std::make_shared<LoraLibrary>();
          copies.Make(*replica.weights, stop);
        }
        // Host memory that is pinned for one device is pinned for all.
        replica.loras->Add(lora.name, reading->weights);
      }
    }
  }
  copies.Keep();
}

}  // namespace wan
