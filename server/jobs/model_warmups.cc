// The warm-ups of ModelRegistry.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/jobs/engine_call.h"
#include "server/jobs/model_errors.h"
#include "server/jobs/model_registry.h"

namespace wan::server {

void ModelRegistry::Warmup(std::string_view name, std::vector<VideoShape> shapes, const Done& done,
                           std::stop_token caller) {
  const absl::Status posted =
      PostWarmup(std::string(BareModelName(name)), std::move(shapes), done, std::move(caller));
  if (!posted.ok()) done(posted);
}

absl::StatusOr<wan::v1::Model> ModelRegistry::BeginWarmup(std::string_view name,
                                                          std::vector<VideoShape> shapes) {
  const std::string bare(BareModelName(name));
  absl::Status posted = PostWarmup(bare, std::move(shapes), nullptr, {});
  if (!posted.ok()) return posted;
  return Get(bare);
}

absl::Status ModelRegistry::PostWarmup(const std::string& name, std::vector<VideoShape> shapes,
                                       const Done& done, std::stop_token caller) {
  if (shapes.size() > kMaxWarmupShapes) {
    return InvalidFields(
        {{"shapes",
          absl::StrCat("has ", shapes.size(), " entries; must have at most ", kMaxWarmupShapes)}});
  }
  const absl::StatusOr<std::vector<int>> ready = CheckReady(name);
  if (!ready.ok()) return ready.status();
  for (const int group : *ready) {
    absl::Status fits = CallEngine([&] { return groups_.engine(group).CheckWarmup(name, shapes); });
    if (!fits.ok()) return fits;
  }
  std::string operation;
  {
    absl::MutexLock lock(&mutex_);
    operation = BeginOperation(name, EntryOf(name), wan::v1::ModelOperation::KIND_WARMUP);
  }
  const auto shared = std::make_shared<Shared>();
  shared->left = static_cast<int>(ready->size());
  for (const int group : *ready) {
    const auto finish = [this, name, operation, done, group, shared](const absl::Status& status) {
      Hear(status, group);
      absl::Status outcome;
      wan::v1::Model model;
      {
        absl::MutexLock lock(&mutex_);
        shared->error.Update(status);
        if (--shared->left > 0) return;
        outcome = shared->error;
        Entry& entry = EntryOf(name);
        EndOperation(name, entry, operation, outcome);
        model = Describe(name, entry);
      }
      if (done != nullptr) Tell(done, outcome, model);
    };
    groups_.executor(group).Post({[this, name, group, shapes, finish, caller] {
                                    finish(RunWarmup(name, group, shapes, caller));
                                  },
                                  [finish] { finish(ServerStoppingError()); }});
  }
  return absl::OkStatus();
}

absl::Status ModelRegistry::RunWarmup(const std::string& name, int group,
                                      const std::vector<VideoShape>& shapes,
                                      const std::stop_token& caller) {
  std::stop_source stop;  // requested by the caller or by Stop(), whichever is first
  const auto end = [&stop] { stop.request_stop(); };
  const std::stop_callback on_caller(caller, end);
  const std::stop_token stopping = stop_token();
  const std::stop_callback on_server(stopping, end);
  if (stop.stop_requested()) {
    return OrStopping(absl::CancelledError("the caller went away before the warm-up began"),
                      stopping);
  }
  absl::Status warm = OrStopping(
      CallEngine([&] { return groups_.engine(group).Warmup(name, shapes, stop.get_token()); }),
      stopping);
  if (IsNotFinite(warm)) Discard(name, group, WarmupFailedError(warm));
  return warm;
}

void ModelRegistry::Discard(const std::string& name, int group, const absl::Status& error) {
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = EntryOf(name);
    // Somebody may have asked to unload it meanwhile, which then does the rest.
    if (entry.places[static_cast<size_t>(group)].state != wan::v1::MODEL_STATE_READY) return;
    SetPlace(entry, group, wan::v1::MODEL_STATE_FAILED, error);
    Refresh(name, entry);
    if (ReadyPlaces(name, entry).empty()) SetIdle(name);
  }
  // Before any task that was posted since, so that a new load finds the name free.
  CallEngine([&] { return groups_.engine(group).UnloadModel(name); }).IgnoreError();
}

absl::StatusOr<std::vector<int>> ModelRegistry::CheckReady(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const Entry* const known = FindKnown(name);
  if (known == nullptr) return NotKnown(name);
  const Entry& entry = *known;
  std::vector<int> ready = ReadyPlaces(name, entry);
  if (ready.empty()) return ModelNotReadyError(name, entry.state, entry.error);
  return ready;
}

}  // namespace wan::server
