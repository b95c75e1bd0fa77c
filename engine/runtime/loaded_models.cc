#include "engine/runtime/loaded_models.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"

namespace wan {

absl::StatusOr<std::shared_ptr<LoadedModel>> LoadedModels::Find(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = models_.find(name);
  if (found != models_.end()) return found->second;
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat("model '", std::string(name), "' is not loaded")),
      "MODEL_NOT_READY");
}

void LoadedModels::Put(const std::string& name, std::shared_ptr<LoadedModel> model) {
  absl::MutexLock lock(&mutex_);
  models_[name].swap(model);
}

absl::StatusOr<std::shared_ptr<LoadedModel>> LoadedModels::Take(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) {
    return absl::NotFoundError(absl::StrCat("model '", std::string(name), "' is not loaded"));
  }
  std::shared_ptr<LoadedModel> model = std::move(found->second);
  models_.erase(found);
  return model;
}

void LoadedModels::AddWarmShape(const VideoShape& shape, LoadedModel& model) {
  absl::MutexLock lock(&mutex_);
  std::vector<VideoShape>& warm = model.description.warm_shapes;
  if (std::find(warm.begin(), warm.end(), shape) == warm.end()) warm.push_back(shape);
}

std::vector<ModelDescription> LoadedModels::Describe() const {
  absl::MutexLock lock(&mutex_);
  std::vector<ModelDescription> descriptions;
  for (const auto& [name, model] : models_) descriptions.push_back(model->description);
  return descriptions;
}

void LoadedModels::ForEach(const Visitor& visit) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, model] : models_) visit(name, model);
}

}  // namespace wan
