#include "engine/pipeline/expert_switch.h"

#include <c10/core/DeviceGuard.h>

#include <string>
#include <utility>

namespace wan {

ExpertSwitch::ExpertSwitch(const GenerationPlan& plan, const PipelineModel& model,
                           Recorder& recorder, WorkGate gate)
    : plan_(plan), model_(model), recorder_(recorder), gate_(std::move(gate)) {
  for (const Expert& expert : model_.experts) {
    if (expert.transformer != nullptr) expert.transformer->RecordForwards(plan_.record_forwards);
    if (expert.loras == nullptr) continue;
    const c10::DeviceGuard on_its_device(expert.device);
    bool changes = expert.weights->SetPatch(
        expert.loras->PatchFor(*expert.weights, expert.role, plan_.request.loras),
        gate_.stop_token());
    for (const ExpertReplica& replica : expert.replicas) {
      const c10::DeviceGuard on_device(replica.device);
      changes |= replica.weights->SetPatch(
          replica.loras->PatchFor(*replica.weights, expert.role, plan_.request.loras),
          gate_.stop_token());
    }
    if (changes) to_merge_.insert(&expert);
  }
}

absl::StatusOr<VideoTransformer*> ExpertSwitch::Take(int step) {
  const auto index = static_cast<size_t>(step);
  absl::StatusOr<const Expert*> expert = Find(plan_.steps[index].expert);
  if (!expert.ok()) return expert.status();
  if (*expert != current_) {
    // Free the previous expert's memory before the next weights need it.
    lease_.reset();
    if (next_ == *expert) {
      lease_ = std::move(next_lease_);
    } else {
      lease_.emplace(Lease(**expert));
    }
    next_lease_.reset();
    next_ = nullptr;
    current_ = *expert;
    if (absl::Status status = Merge(**expert); !status.ok()) return status;
  }
  if (plan_.prefetch_experts && index + 1 < plan_.steps.size()) {
    const ExpertRole role = plan_.steps[index + 1].expert;
    if (role != current_->role) {
      absl::StatusOr<const Expert*> next = Find(role);
      if (!next.ok()) return next.status();
      next_lease_.emplace(Lease(**next));
      next_ = *next;
    }
  }
  return current_->transformer.get();
}

absl::StatusOr<const Expert*> ExpertSwitch::Find(ExpertRole role) const {
  for (const Expert& expert : model_.experts) {
    if (expert.role == role) return &expert;
  }
  return absl::InternalError("the model has no expert '" + std::string(NameOf(role)) + "'");
}

void ExpertSwitch::Finish() {
  lease_.reset();
  next_lease_.reset();
  current_ = nullptr;
  next_ = nullptr;
  for (const Expert& expert : model_.experts) {
    if (expert.transformer != nullptr) expert.transformer->RecordForwards(false);
  }
}

absl::Status ExpertSwitch::Merge(const Expert& expert) {
  if (!to_merge_.contains(&expert)) return absl::OkStatus();
  Span span = recorder_.StartSpan(StageKind::kLoraMerging);
  const c10::DeviceGuard on_its_device(expert.device);
  absl::Status status = expert.weights->FinishPatch(
      expert.device == model_.device ? gate_ : WorkGate(expert.device, gate_.stop_token()));
  for (const ExpertReplica& replica : expert.replicas) {
    if (!status.ok()) break;
    const c10::DeviceGuard on_device(replica.device);
    status = replica.weights->FinishPatch(WorkGate(replica.device, gate_.stop_token()));
  }
  status = span.Finish(status);
  if (status.ok()) to_merge_.erase(&expert);
  return status;
}

WeightLease ExpertSwitch::Lease(const Expert& expert) const {
  return WeightLease(expert.weights, PolicyOf(plan_, expert.component), gate_.stop_token());
}

}  // namespace wan
