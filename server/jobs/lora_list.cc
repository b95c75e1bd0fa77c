#include "server/jobs/lora_list.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"

namespace wan::server {
namespace {

std::set<std::string> NamesOf(const std::vector<LoraSource>& loras) {
  std::set<std::string> names;
  for (const LoraSource& lora : loras) names.insert(lora.name);
  return names;
}

}  // namespace

std::vector<LoraSource> Registered(const std::vector<LoraSource>& loras) {
  std::vector<LoraSource> registered;
  std::copy_if(loras.begin(), loras.end(), std::back_inserter(registered),
               [](const LoraSource& lora) { return !lora.found; });
  return registered;
}

absl::Status Edit(const LoraEdits& edits, const std::vector<LoraSource>& found,
                  std::vector<LoraSource>& loras) {
  std::vector<FieldViolation> violations;
  const std::set<std::string> registered = NamesOf(loras);
  const std::set<std::string> in_folders = NamesOf(found);
  for (size_t i = 0; i < edits.remove.size(); ++i) {
    const std::string& name = edits.remove[i];
    if (registered.contains(name)) continue;
    violations.push_back(
        {absl::StrCat("removed_loras[", i, "]"),
         in_folders.contains(name)
             ? absl::StrCat("is '", name,
                            "', which lies in a folder of lora_dirs; must be taken out of the "
                            "folder, and the model loaded again")
             : absl::StrCat("is '", name, "'; must be a LoRA of the model, whose LoRAs are: ",
                            registered.empty() ? "none" : absl::StrJoin(registered, ", "))});
  }
  if (!violations.empty()) return InvalidFields(violations);
  std::erase_if(loras, [&](const LoraSource& lora) {
    return std::find(edits.remove.begin(), edits.remove.end(), lora.name) != edits.remove.end();
  });
  for (const LoraSource& added : edits.add) {
    std::erase_if(loras, [&](const LoraSource& lora) {
      return lora.name == added.name && lora.expert == added.expert;
    });
  }
  loras.insert(loras.end(), edits.add.begin(), edits.add.end());
  return absl::OkStatus();
}

void AddFound(const std::vector<LoraSource>& found, std::vector<LoraSource>& loras) {
  const std::set<std::string> registered = NamesOf(loras);
  std::copy_if(found.begin(), found.end(), std::back_inserter(loras),
               [&](const LoraSource& lora) { return !registered.contains(lora.name); });
}

bool Extends(const std::vector<LoraSource>& loras, const std::vector<LoraSource>& former) {
  const auto has = [](const std::vector<LoraSource>& list, const LoraSource& lora) {
    return std::find(list.begin(), list.end(), lora) != list.end();
  };
  const std::set<std::string> names = NamesOf(former);
  return std::all_of(former.begin(), former.end(),
                     [&](const LoraSource& lora) { return has(loras, lora); }) &&
         std::all_of(loras.begin(), loras.end(), [&](const LoraSource& lora) {
           return !names.contains(lora.name) || has(former, lora);
         });
}

}  // namespace wan::server
