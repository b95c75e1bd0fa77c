#include "engine/runtime/lora_loading.h"

#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/weights/lora_weights.h"

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

}  // namespace

absl::StatusOr<OpenedLoras> OpenedLoras::Open(const std::vector<LoraSource>& sources,
                                              const Checkpoint& checkpoint,
                                              std::span<const ExpertRole> experts) {
  OpenedLoras opened;
  opened.roles_.assign(experts.begin(), experts.end());
  for (const LoraSource& source : sources) {
    if (source.expert.has_value() &&
        std::find(experts.begin(), experts.end(), *source.expert) == experts.end()) {
      return Named(source,
                   absl::InvalidArgumentError(absl::StrCat(
                       source.path, " is for the expert '", Name(*source.expert),
                       "', which the model does not have; its experts are: ", Names(experts))));
    }
    Lora& lora = opened.Find(source.name);
    std::shared_ptr<const LoraFile> shared;  // experts of equal dimensions share one reading
    for (size_t i = 0; i < experts.size(); ++i) {
      if (source.expert.has_value() && source.expert != experts[i]) continue;
      const int expert = static_cast<int>(i);
      Part& part = lora.experts[i];
      if (part.file != nullptr) {
        return Named(source, absl::InvalidArgumentError(absl::StrCat(
                                 "has two files for the expert '", Name(experts[i]), "', ",
                                 part.path, " and ", source.path, "; keep one")));
      }
      const TransformerConfig& config = checkpoint.transformer_config(expert);
      if (shared == nullptr || config != checkpoint.transformer_config(expert - 1)) {
        absl::StatusOr<LoraFile> file = ReadLoraFile(source.path, config);
        if (!file.ok()) return Named(source, file.status());
        shared = std::make_shared<const LoraFile>(*std::move(file));
        opened.AddFiles(source, *shared);
      }
      part = {source.path, shared};
    }
  }
  return opened;
}

void OpenedLoras::AddFiles(const LoraSource& source, const LoraFile& lora) {
  // Two experts' files of one LoRA may have the same file name in different folders.
  const std::string folder = source.expert.has_value()
                                 ? absl::StrCat("loras/", source.name, "/", Name(*source.expert))
                                 : absl::StrCat("loras/", source.name);
  for (const ModelFile& file : lora.files) {
    ModelFile added{absl::StrCat(folder, "/", file.name), file.path, file.version};
    const auto place = std::lower_bound(
        files_.begin(), files_.end(), added.name,
        [](const ModelFile& other, const std::string& name) { return other.name < name; });
    // For an expert with other dimensions the file is read again, but it is listed only once.
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
  std::set<const LoraFile*> files;
  for (const Part& part : lora.experts) files.insert(part.file.get());
  uint64_t bytes = 0;
  for (const LoraFile* const file : files) bytes += file == nullptr ? 0 : file->bytes;
  return bytes;
}

std::vector<PlannedLora> OpenedLoras::Plan() const {
  std::vector<PlannedLora> planned;
  for (const Lora& lora : loras_) {
    PlannedLora& added = planned.emplace_back();
    added.name = lora.name;
    added.host_bytes = HostBytes(lora);
    for (const Part& part : lora.experts) {
      added.experts.push_back(part.file == nullptr ? std::nullopt
                                                   : std::optional(FootprintOf(*part.file)));
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
    for (size_t i = 0; i < lora.experts.size(); ++i) {
      const Part& part = lora.experts[i];
      if (part.file == nullptr) continue;
      std::set<std::string> targets;
      for (const LoraTerm& term : part.file->terms) targets.insert(term.target);
      LoraPartDescription& described = added.parts.emplace_back();
      described.expert = roles_[i];
      described.path = part.path;
      described.rank = part.file->rank;
      described.tensors = static_cast<int64_t>(targets.size());
      described.left_out_tensors = part.file->left_out;
      for (const LoraTerm& term : part.file->terms) {
        if (term.IsDifference()) continue;
        described.min_factor = std::min(described.min_factor.value_or(term.factor), term.factor);
        described.max_factor = std::max(described.max_factor.value_or(term.factor), term.factor);
      }
    }
  }
  return descriptions;
}

void OpenedLoras::AddTo(std::vector<Expert>& experts, const std::stop_token& stop) const {
  // Experts that share a file share its factors as well.
  std::map<const LoraFile*, std::shared_ptr<const LoraWeights>> loaded;
  for (const Lora& lora : loras_) {
    for (size_t i = 0; i < lora.experts.size(); ++i) {
      const LoraFile* const file = lora.experts[i].file.get();
      if (file == nullptr) continue;
      Expert& expert = experts[i];
      const c10::DeviceGuard on_its_device(expert.device);
      if (expert.loras == nullptr) {
        expert.loras = std::make_shared<LoraLibrary>();
        // Weights with the policy disk need no copy: they are read again instead of restored.
        if (expert.weights->home() != ComponentWeights::Home::kDisk) {
          expert.weights->KeepHostCopy(stop);
        }
      }
      std::shared_ptr<const LoraWeights>& weights = loaded[file];
      if (weights == nullptr) weights = LoraWeights::Load(*file, expert.weights->mover(), stop);
      expert.loras->Add(lora.name, weights);
      for (ExpertReplica& replica : expert.replicas) {
        if (replica.loras == nullptr) {
          const c10::DeviceGuard on_device(replica.device);
          replica.loras = std::make_shared<LoraLibrary>();
          replica.weights->KeepHostCopy(stop);
        }
        // Host memory that is pinned for one device is pinned for all.
        replica.loras->Add(lora.name, weights);
      }
    }
  }
}

}  // namespace wan
