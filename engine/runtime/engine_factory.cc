#include "engine/api/engine_factory.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <torch/version.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/device/device_graph.h"
#include "engine/device/device_name.h"
#include "engine/device/library_defaults.h"
#include "engine/device/plugin_loader.h"
#include "engine/monitor/group_monitor.h"
#include "engine/monitor/machine_monitor.h"
#include "engine/planning/device_budget.h"
#include "engine/runtime/assumed_rate.h"
#include "engine/runtime/load_plan.h"
#include "engine/runtime/wan_engine.h"

namespace wan {
namespace {

// Reads the counters of LibTorch's caching allocator for one GPU.
class TorchAllocatorProbe final : public AllocatorProbe {
 public:
  TorchAllocatorProbe(c10::DeviceIndex device, std::shared_ptr<HeldBytes> weights)
      : device_(device), weights_(std::move(weights)) {}

  AllocatorBytes Read() override {
    const auto stats = at::accelerator::getDeviceStats(device_);
    // Entry 0 is the total over all of the allocator's pools.
    const auto& bytes = stats.allocated_bytes[0];
    return {static_cast<uint64_t>(bytes.current), static_cast<uint64_t>(bytes.peak),
            static_cast<uint64_t>(stats.reserved_bytes[0].peak), 0};
  }

  AllocatorBytes ReadAndResetPeak() override {
    AllocatorBytes bytes = Read();
    bytes.weights_peak = weights_->TakePeak();
    at::accelerator::resetPeakStats(device_);
    return bytes;
  }

 private:
  const c10::DeviceIndex device_;
  const std::shared_ptr<HeldBytes> weights_;
};

absl::StatusOr<at::ScalarType> ParseDType(const std::string& dtype, bool on_gpu) {
  if (dtype.empty()) return on_gpu ? at::kBFloat16 : at::kFloat;
  if (dtype == "fp32") return at::kFloat;
  if (dtype == "bf16") return at::kBFloat16;
  return absl::InvalidArgumentError(absl::StrCat("dtype is '", dtype, "'; must be fp32 or bf16"));
}

// `devices` lists one device per rank.
LoadOptions MakeLoadOptions(const EngineOptions& options, const std::vector<at::Device>& devices,
                            at::ScalarType dtype) {
  const at::Device device = devices.front();
  LoadOptions load{.engine = options,
                   .device = device,
                   .peers = {devices.begin() + 1, devices.end()},
                   .dtype = dtype};
  if (!options.vae_precision) load.engine.vae_precision = DefaultVaePrecision(DTypeLabel(dtype));
  if (options.record_forwards) load.graphs = MakeDeviceGraphRecorder(device);
  const auto counters = [&devices] {
    return DeviceCounters{std::make_shared<HeldBytes>(),
                          devices.size() > 1 ? std::make_shared<ExchangeMeter>() : nullptr};
  };
  load.counters = counters();
  for (size_t i = 1; i < devices.size(); ++i) load.peer_counters.push_back(counters());
  return load;
}

const DeviceCounters& CountersOf(size_t rank, const LoadOptions& load) {
  return rank == 0 ? load.counters : load.peer_counters[rank - 1];
}

// Combines the ranks' monitors, given in the order of the ranks, into one monitor.
std::unique_ptr<DeviceMonitor> Together(std::vector<std::unique_ptr<MachineMonitor>> monitors,
                                        const LoadOptions& load) {
  if (monitors.size() == 1) return std::move(monitors.front());
  std::vector<MonitoredDevice> devices;
  for (size_t rank = 0; rank < monitors.size(); ++rank) {
    devices.push_back({std::move(monitors[rank]), CountersOf(rank, load).exchanges});
  }
  return std::make_unique<GroupMonitor>(std::move(devices));
}

// Formats CUDA's version number as text, for example 12080 as "12.8".
std::string CudaVersionText(int64_t version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

// Returns the facts that do not depend on the device.
SystemFacts HostFacts() {
  SystemFacts facts;
  facts.libtorch_version = TORCH_VERSION;
  facts.cpu_name = ReadCpuName();
  facts.cpu_cores = static_cast<int>(std::thread::hardware_concurrency());
  if (const auto memory = ReadSystemMemory()) facts.memory_total_bytes = memory->total_bytes;
  return facts;
}

std::unique_ptr<Engine> MakeCpuEngine(const EngineOptions& options, size_t ranks,
                                      at::ScalarType dtype) {
  PlanLimits limits;
  if (const auto memory = ReadSystemMemory()) limits.device_memory_bytes = memory->total_bytes;
  if (options.device_memory_limit > 0 && options.device_memory_limit < limits.device_memory_bytes) {
    limits.device_memory_bytes = options.device_memory_limit;
  }
  // Each rank has its own weights and activations, so each rank gets a part of the memory.
  limits.device_memory_bytes /= ranks;
  LoadOptions load = MakeLoadOptions(options, std::vector<at::Device>(ranks, at::kCPU), dtype);
  std::vector<std::unique_ptr<MachineMonitor>> monitors;
  for (size_t rank = 0; rank < ranks; ++rank) {
    monitors.push_back(std::make_unique<MachineMonitor>("", nullptr, nullptr));
  }
  // Only one monitor samples, because all CPU ranks have the same figures.
  monitors.front()->StartSampling();
  std::unique_ptr<DeviceMonitor> monitor = Together(std::move(monitors), load);
  const SystemFacts facts = HostFacts();
  return std::make_unique<WanEngine>(
      std::move(load),
      DeviceDescription{"cpu", facts.cpu_name, DTypeLabel(dtype),
                        absl::StrCat("LibTorch ", TORCH_VERSION), facts,
                        AssumedCpuRate(facts.cpu_cores, DTypeLabel(dtype))},
      limits, std::move(monitor));
}

// Sets the allocator's limit on a GPU on which this process holds nothing yet, and returns the
// bytes that jobs may use there.
absl::StatusOr<uint64_t> ClaimMemory(c10::DeviceIndex device, uint64_t limit) {
  const uint64_t free = at::accelerator::getMemoryInfo(device).first;
  const absl::StatusOr<DeviceBudget> budget = ShareDeviceMemory(free, limit);
  if (!budget.ok()) return budget.status();
  if (budget->allocator_bytes > 0) {
    if (absl::Status status = LimitCudaMemory(device, budget->allocator_bytes); !status.ok()) {
      return status;
    }
  }
  return budget->job_bytes;
}

// Returns the bytes of the GPU that jobs may use now; 0: unknown, for example because the GPU is
// lost.
uint64_t PresentMemory(c10::DeviceIndex device) {
  try {
    const uint64_t free = at::accelerator::getMemoryInfo(device).first;
    const auto stats = at::accelerator::getDeviceStats(device);
    return PresentJobBytes(free, static_cast<uint64_t>(stats.reserved_bytes[0].current));
  } catch (const std::exception&) {
    return 0;
  }
}

// Returns the smallest result of the group's devices: the plan is made for the first device, and
// each device must hold as much as that plan says.
uint64_t PresentMemory(const std::vector<at::Device>& devices) {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const at::Device& device : devices) least = std::min(least, PresentMemory(device.index()));
  return least;
}

absl::StatusOr<uint64_t> ClaimMemory(const std::vector<at::Device>& devices, uint64_t limit) {
  std::optional<uint64_t> least;
  for (const at::Device& device : devices) {
    const absl::StatusOr<uint64_t> memory = ClaimMemory(device.index(), limit);
    if (!memory.ok()) {
      return absl::Status(memory.status().code(),
                          absl::StrCat(device.str(), ": ", memory.status().message()));
    }
    least = std::min(least.value_or(*memory), *memory);
  }
  return *least;
}

// `weights` counts the bytes of weights on the GPU.
std::unique_ptr<MachineMonitor> MonitorOf(const at::Device& device,
                                          std::shared_ptr<HeldBytes> weights, bool gpm) {
  std::unique_ptr<NvmlDevice> nvml;
  if (absl::StatusOr<std::string> bus_id = CudaPciBusId(device.index()); bus_id.ok()) {
    nvml = OpenNvmlDevice(*bus_id, gpm ? GpmUse::kOn : GpmUse::kOff);
  }
  return std::make_unique<MachineMonitor>(
      device.str(), std::make_unique<TorchAllocatorProbe>(device.index(), std::move(weights)),
      std::move(nvml));
}

absl::StatusOr<std::unique_ptr<Engine>> MakeCudaEngine(const EngineOptions& options,
                                                       const std::vector<int>& gpus,
                                                       at::ScalarType dtype) {
  const absl::StatusOr<const CudaPlugin*> plugin = LoadCudaPlugin();
  if (!plugin.ok()) return plugin.status();
  std::vector<at::Device> devices;
  for (const int gpu : gpus) {
    if (absl::Status status = CheckGpuExists(gpu, CudaDeviceCount()); !status.ok()) return status;
    if (absl::Status status = CheckGpuIsCompiledFor(gpu); !status.ok()) return status;
    devices.emplace_back(at::kCUDA, static_cast<c10::DeviceIndex>(gpu));
  }
  const Quality quality = options.quality.value_or(DefaultQuality(options.eight_bit_weights));
  if (const auto obstacle = WhyNoEightBits(dtype, devices);
      obstacle.has_value() && RoundsToEightBits(quality)) {
    return absl::InvalidArgumentError(
        absl::StrCat("quality is ", std::string(NameOf(quality)), "; must be exact ", *obstacle));
  }
  at::globalContext().lazyInitDevice(at::kCUDA);
  at::accelerator::setDeviceIndex(devices.front().index());
  ReplaceLibraryDefaults();
  // Allow TF32 in cuDNN's convolutions only if the engine computes in bf16.
  at::globalContext().setAllowTF32CuDNN(dtype != at::kFloat);
  const absl::StatusOr<uint64_t> memory = ClaimMemory(devices, options.device_memory_limit);
  if (!memory.ok()) return memory.status();
  LoadOptions load = MakeLoadOptions(options, devices, dtype);
  std::vector<std::unique_ptr<MachineMonitor>> monitors;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    monitors.push_back(MonitorOf(devices[rank], CountersOf(rank, load).weights, options.gpm));
    monitors.back()->StartSampling();
  }
  DeviceDescription description{devices.front().str(), "", DTypeLabel(dtype), "", HostFacts()};
  const auto cudnn = at::detail::getCUDAHooks().versionCuDNN();
  std::array<char, 64> versions{};
  if ((*plugin)->libraries(versions.data(), versions.size()) != 0) {
    return absl::UnavailableError("CUDA does not tell its version");
  }
  description.libraries =
      absl::StrCat("LibTorch ", TORCH_VERSION, ", cuDNN ", cudnn, ", ", versions.data());
  description.system.cudnn_version = absl::StrCat(cudnn);
  description.system.cuda_version = CudaVersionText(at::detail::getCUDAHooks().versionCUDART());
  description.system.gpu = monitors.front()->Gpu().value_or(GpuFacts());
  description.name = description.system.gpu->name;
  description.assumed_rate = AssumedGpuRate(description.name, description.dtype);
  std::unique_ptr<DeviceMonitor> all = Together(std::move(monitors), load);
  return std::make_unique<WanEngine>(
      std::move(load), std::move(description), PlanLimits{*memory}, std::move(all),
      MemoryProbes{.device = [devices] { return PresentMemory(devices); }});
}

// Returns the GPUs of a group; empty if the devices are CPUs. INVALID_ARGUMENT if the devices
// cannot form a group.
absl::StatusOr<std::vector<int>> ParseGroup(const std::vector<std::string>& devices) {
  if (devices.empty()) {
    return absl::InvalidArgumentError("the group has no device; name at least one");
  }
  std::vector<int> gpus;
  for (const std::string& name : devices) {
    const absl::StatusOr<std::optional<int>> gpu = ParseDeviceName(name);
    if (!gpu.ok()) return gpu.status();
    if (!gpu->has_value()) continue;
    if (std::find(gpus.begin(), gpus.end(), **gpu) != gpus.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("device '", name, "' is twice in one group; name each GPU once"));
    }
    gpus.push_back(**gpu);
  }
  if (!gpus.empty() && gpus.size() != devices.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the devices of a group are ",
                                                   absl::StrJoin(devices, ", "),
                                                   "; they must all be GPUs, or all be cpu"));
  }
  return gpus;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> MakeWanEngine(const std::vector<std::string>& devices,
                                                      const EngineOptions& options) {
  const absl::StatusOr<std::vector<int>> gpus = ParseGroup(devices);
  if (!gpus.ok()) return gpus.status();
  const absl::StatusOr<at::ScalarType> dtype = ParseDType(options.dtype, !gpus->empty());
  if (!dtype.ok()) return dtype.status();
  if (!IsH264Preset(options.h264.preset) || options.h264.crf < kBestH264Crf ||
      options.h264.crf > kWorstH264Crf) {
    return absl::InvalidArgumentError(absl::StrCat(
        "H.264 preset '", options.h264.preset, "' with crf ", options.h264.crf, "; must be one of ",
        absl::StrJoin(kH264Presets, ", "), " with ", kBestH264Crf, " to ", kWorstH264Crf));
  }
  if (options.cpu_threads > 0) at::set_num_threads(options.cpu_threads);
  try {
    if (!gpus->empty()) return MakeCudaEngine(options, *gpus, *dtype);
    return MakeCpuEngine(options, devices.size(), *dtype);
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("device ", absl::StrJoin(devices, ","),
                                               " could not be initialised: ", error.what()));
  }
}

}  // namespace wan
