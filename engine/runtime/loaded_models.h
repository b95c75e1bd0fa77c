// Holds the models of an engine that are in memory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/runtime/model_loading.h"

namespace wan {

// Thread-safe. A model lives as long as somebody holds a pointer to it. A model's weights have
// locks of their own.
class LoadedModels {
 public:
  using Visitor =
      std::function<void(const std::string& name, const std::shared_ptr<LoadedModel>& model)>;

  // Returns the model `name`; FAILED_PRECONDITION (MODEL_NOT_READY) if no such model is loaded.
  absl::StatusOr<std::shared_ptr<LoadedModel>> Find(std::string_view name) const;
  // Adds a model. The new model replaces a model of the same name.
  void Put(const std::string& name, std::shared_ptr<LoadedModel> model);
  // Removes a model and returns it; NOT_FOUND if no such model is loaded.
  absl::StatusOr<std::shared_ptr<LoadedModel>> Take(std::string_view name);

  // Records in the model's description that a warm-up ran this shape.
  void AddWarmShape(const VideoShape& shape, LoadedModel& model);
  std::vector<ModelDescription> Describe() const;

  // Calls `visit` for each model, in the order of their names. No model can be added or removed
  // meanwhile, so `visit` must be quick; it must not call this object.
  void ForEach(const Visitor& visit) const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<LoadedModel>, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
