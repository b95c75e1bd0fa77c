#include "engine/runtime/memory_arbiter.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/api/errors.h"
#include "engine/device/torch_errors.h"
#include "engine/monitor/proc_stats.h"

namespace wan {
namespace {

// Returns the bytes of host memory that parking `weights` takes.
uint64_t UncopiedBytes(const ComponentWeights& weights) {
  return static_cast<uint64_t>(weights.Sizes().total - weights.HostBytes());
}

// Returns whether a component of another model may leave the device without a host copy.
bool MayBeDropped(ResidencyPolicy policy) {
  return policy == ResidencyPolicy::kDisk || policy == ResidencyPolicy::kAuto;
}

// Returns the name of the first device that has the component.
std::string DeviceOf(const ComponentDescription& component) {
  return component.device.substr(0, component.device.find(','));
}

// Weights of another model that may leave the device.
struct Movable {
  std::shared_ptr<ComponentWeights> weights;
  ResidencyPolicy policy;
};

// The weights and memory that all models except one have on the device.
struct Others {
  std::vector<Movable> movable;
  std::vector<std::shared_ptr<LoadedModel>> models;
  uint64_t held = 0;
  uint64_t recorded = 0;  // bytes of the recorded forwards of `models`
};

Others OthersThan(const LoadedModel* model, const LoadedModels& models) {
  Others others;
  models.ForEach([&](const std::string&, const std::shared_ptr<LoadedModel>& other) {
    if (other.get() == model) return;
    others.models.push_back(other);
    for (const Expert& expert : other->pipeline.experts) {
      others.recorded += static_cast<uint64_t>(expert.transformer->RecordedBytes());
    }
    for (size_t i = 0; i < other->weights.size(); ++i) {
      const PlannedComponent& component = other->pipeline.planned.components[i];
      if (other->weights[i] == nullptr || component.elsewhere) continue;
      others.held += static_cast<uint64_t>(other->weights[i]->DeviceBytes());
      if (component.policy != ResidencyPolicy::kResident) {
        others.movable.push_back({other->weights[i], component.policy});
      }
    }
  });
  return others;
}

Sample MemorySample(const std::string& model, ModelComponent component, std::string device,
                    double bytes) {
  return {"component_memory_bytes",
          bytes,
          {{"model", model},
           {"component", std::string(NameOf(component))},
           {"device", std::move(device)}}};
}

}  // namespace

uint64_t AvailableHostMemory() {
  const std::optional<SystemMemory> memory = ReadSystemMemory();
  // The result is never 0, because callers read 0 as unknown.
  return memory.has_value() ? std::max<uint64_t>(memory->total_bytes - memory->used_bytes, 1) : 0;
}

MemoryArbiter::MemoryArbiter(const LoadedModels& models, c10::Device device,
                             const PlanLimits& limits, MemoryProbes probes)
    : models_(models), device_(device), limits_(limits), probes_(std::move(probes)) {}

uint64_t MemoryArbiter::DeviceMemory() const {
  const uint64_t limit = limits_.device_memory_bytes;
  if (limit == 0 || probes_.device == nullptr) return limit;
  const uint64_t now = probes_.device();
  return now == 0 ? limit : std::min(limit, now);
}

uint64_t MemoryArbiter::DeviceMemoryFor(std::string_view name) const {
  const uint64_t limit = DeviceMemory();
  if (limit == 0) return 0;
  uint64_t taken = 0;
  models_.ForEach([&](const std::string& other, const std::shared_ptr<LoadedModel>& model) {
    if (other == name) return;
    for (const PlannedComponent& component : model->pipeline.planned.components) {
      const bool here = !component.elsewhere;
      if (here && component.policy == ResidencyPolicy::kResident) taken += component.bytes;
    }
  });
  // The result is never 0, because callers read 0 as unknown.
  return taken < limit ? limit - taken : 1;
}

uint64_t MemoryArbiter::HeldOnHost() const {
  const bool device_is_host = device_.is_cpu();
  uint64_t held = 0;
  const auto add = [&](const ComponentWeights& weights) {
    held += static_cast<uint64_t>(weights.HostBytes());
    if (device_is_host) held += static_cast<uint64_t>(weights.DeviceBytes());
  };
  models_.ForEach([&](const std::string&, const std::shared_ptr<LoadedModel>& model) {
    for (const std::shared_ptr<ComponentWeights>& weights : model->weights) {
      if (weights != nullptr) add(*weights);
    }
    for (const Expert& expert : model->pipeline.experts) {
      for (const ExpertReplica& replica : expert.replicas) add(*replica.weights);
    }
  });
  return held;
}

PlanLimits MemoryArbiter::LimitsFor(std::string_view name, const LoadedModel& model) const {
  PlanLimits limits{DeviceMemoryFor(name), {}};
  HostLimits& host = limits.host;
  host.is_device = device_.is_cpu();
  for (const std::shared_ptr<ComponentWeights>& weights : model.weights) {
    host.copies.push_back(weights == nullptr ? 0 : static_cast<uint64_t>(weights->HostBytes()));
    if (host.is_device && weights != nullptr) {
      host.weights_on_device += static_cast<uint64_t>(weights->DeviceBytes());
    }
  }
  const uint64_t now = HostMemory();
  models_.ForEach([&](const std::string& other_name, const std::shared_ptr<LoadedModel>& other) {
    if (other_name == name || host.is_device) return;
    for (size_t i = 0; i < other->weights.size(); ++i) {
      const PlannedComponent& component = other->pipeline.planned.components[i];
      const std::shared_ptr<ComponentWeights>& weights = other->weights[i];
      if (component.policy == ResidencyPolicy::kResident || weights == nullptr) continue;
      const auto copied = static_cast<uint64_t>(weights->HostBytes());
      host.others.push_back({static_cast<uint64_t>(weights->DeviceBytes()),
                             MayBeDropped(component.policy)
                                 ? 0
                                 : component.bytes - std::min(copied, component.bytes)});
    }
  });
  host.available_bytes = now;
  absl::MutexLock lock(&mutex_);
  if (host_total_.has_value() && now > 0) {
    const uint64_t held = HeldOnHost();
    host.available_bytes = std::max(now, *host_total_ > held ? *host_total_ - held : 1);
  }
  return limits;
}

absl::Status MemoryArbiter::CheckRoomToPark(uint64_t bytes) const {
  if (bytes == 0) return absl::OkStatus();
  const uint64_t available = HostMemory();
  if (available == 0 || bytes <= available) return absl::OkStatus();
  constexpr double kGiB = 1 << 30;
  return WithReason(
      absl::ResourceExhaustedError(absl::StrFormat(
          "the weights that must leave the device need %.1f GiB of host memory, but %.1f GiB is "
          "available to this process; raise its limit, or load fewer models",
          static_cast<double>(bytes) / kGiB, static_cast<double>(available) / kGiB)),
      "HOST_MEMORY_EXHAUSTED");
}

absl::Status MemoryArbiter::ParkOthers(const LoadedModel* model, uint64_t needed_bytes,
                                       uint64_t host_bytes, const std::stop_token& stop) {
  const uint64_t limit = DeviceMemory();
  if (limit == 0) return absl::OkStatus();
  Others others = OthersThan(model, models_);
  return CatchTorchErrors("making room for another model", [&]() -> absl::Status {
    if (others.held + others.recorded + needed_bytes > limit) {
      for (const std::shared_ptr<LoadedModel>& other : others.models) {
        for (const Expert& expert : other->pipeline.experts) {
          expert.transformer->RecordForwards(false);
        }
      }
    }
    for (const auto& [weights, policy] : others.movable) {
      if (others.held + needed_bytes <= limit) break;
      const auto bytes = static_cast<uint64_t>(weights->DeviceBytes());
      if (bytes == 0) continue;
      others.held -= bytes;
      const uint64_t uncopied = UncopiedBytes(*weights);
      // Parking must leave `host_bytes` to the job. If it would not, drops the weights, where that
      // is allowed.
      const absl::Status room = CheckRoomToPark(uncopied == 0 ? 0 : uncopied + host_bytes);
      if (policy == ResidencyPolicy::kDisk || (MayBeDropped(policy) && !room.ok())) {
        weights->Drop();
        continue;
      }
      if (absl::Status status = CheckRoomToPark(uncopied); !status.ok()) return status;
      weights->Park(stop);
    }
    return absl::OkStatus();
  });
}

absl::Status MemoryArbiter::ClearDevice(const std::stop_token& stop) {
  return ParkOthers(nullptr, /*needed_bytes=*/limits_.device_memory_bytes, /*host_bytes=*/0, stop);
}

absl::Status MemoryArbiter::PrepareDevice(const GenerationPlan& plan, const LoadedModel& model,
                                          const std::stop_token& stop) {
  if (absl::Status status = ParkOthers(&model, plan.peak_device_bytes, plan.peak_host_bytes, stop);
      !status.ok()) {
    return status;
  }
  return CatchTorchErrors("making room", [&]() -> absl::Status {
    for (size_t i = 0; i < plan.residency.size(); ++i) {
      const ResidencyPolicy policy = plan.residency[i].policy;
      const bool moves = policy == ResidencyPolicy::kHost || policy == ResidencyPolicy::kStream;
      if (model.weights[i] == nullptr) continue;
      if (policy == ResidencyPolicy::kDisk) model.weights[i]->Drop();
      if (!moves) continue;
      if (absl::Status status = CheckRoomToPark(UncopiedBytes(*model.weights[i])); !status.ok()) {
        return status;
      }
      // Park now: if there were too little host memory after the component's work, the job would
      // fail.
      model.weights[i]->KeepHostCopy(stop);
      model.weights[i]->Park();
    }
    return absl::OkStatus();
  });
}

void MemoryArbiter::RecordMemory(Recorder& recorder) const {
  // Call the recorder only after the visit. The recorder's sinks take locks of the server, and
  // threads that hold these locks ask this engine for its models.
  std::vector<Sample> samples;
  models_.ForEach([&](const std::string& name, const std::shared_ptr<LoadedModel>& model) {
    for (size_t i = 0; i < model->weights.size(); ++i) {
      const ComponentDescription& component = model->description.components[i];
      const double bytes = model->weights[i] == nullptr
                               ? static_cast<double>(component.bytes)
                               : static_cast<double>(model->weights[i]->DeviceBytes());
      samples.push_back(MemorySample(name, component.component, DeviceOf(component), bytes));
    }
    for (const Expert& expert : model->pipeline.experts) {
      for (const ExpertReplica& replica : expert.replicas) {
        samples.push_back(MemorySample(name, expert.component, replica.device.str(),
                                       static_cast<double>(replica.weights->DeviceBytes())));
      }
    }
  });
  for (const Sample& sample : samples) recorder.Record(sample);
}

MemoryArbiter::RunningJob::RunningJob(MemoryArbiter& arbiter) : arbiter_(arbiter) {
  const uint64_t available = arbiter.HostMemory();
  absl::MutexLock lock(&arbiter.mutex_);
  arbiter.host_total_ = available + arbiter.HeldOnHost();
}

MemoryArbiter::RunningJob::~RunningJob() {
  absl::MutexLock lock(&arbiter_.mutex_);
  arbiter_.host_total_.reset();
}

}  // namespace wan
