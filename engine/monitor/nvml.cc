#include "engine/monitor/nvml.h"

#include <dlfcn.h>
#include <nvml.h>

#include <cmath>
#include <iterator>

#include "absl/base/attributes.h"
#include "absl/base/const_init.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

// nvmlDeviceGetTemperature is deprecated. The successor of that function needs a newer driver than
// the oldest driver that we support.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace wan {
namespace {

// The functions of NVML that are used, under their names in nvml.h (which maps some of them to
// names with versions).
struct NvmlApi {
  void* library = nullptr;
  decltype(&nvmlInit_v2) init = nullptr;
  decltype(&nvmlDeviceGetHandleByPciBusId_v2) by_pci = nullptr;
  decltype(&nvmlDeviceGetName) name = nullptr;
  decltype(&nvmlDeviceGetMemoryInfo) memory = nullptr;
  decltype(&nvmlDeviceGetUtilizationRates) utilization = nullptr;
  decltype(&nvmlDeviceGetPowerUsage) power = nullptr;
  decltype(&nvmlDeviceGetTemperature) temperature = nullptr;
  decltype(&nvmlDeviceGetClockInfo) clock = nullptr;
  // The library may lack the following functions.
  decltype(&nvmlSystemGetDriverVersion) driver_version = nullptr;
  decltype(&nvmlDeviceGetUUID) uuid = nullptr;
  decltype(&nvmlDeviceGetMaxClockInfo) max_clock = nullptr;
  decltype(&nvmlDeviceGetEnforcedPowerLimit) power_limit = nullptr;
  decltype(&nvmlDeviceGetTotalEnergyConsumption) energy = nullptr;
  decltype(&nvmlDeviceGetComputeRunningProcesses_v3) processes = nullptr;
  // Driver 535 gave this function a new name, but newer drivers still have the old name,
  // ...ThrottleReasons.
  decltype(&nvmlDeviceGetCurrentClocksEventReasons) clock_reasons = nullptr;
  // GPM exists since driver 520.
  decltype(&nvmlGpmQueryDeviceSupport) gpm_support = nullptr;
  decltype(&nvmlGpmSampleAlloc) gpm_alloc = nullptr;
  decltype(&nvmlGpmSampleFree) gpm_free = nullptr;
  decltype(&nvmlGpmSampleGet) gpm_get = nullptr;
  decltype(&nvmlGpmMetricsGet) gpm_metrics = nullptr;

  bool has_gpm() const { return gpm_support && gpm_alloc && gpm_free && gpm_get && gpm_metrics; }
};

template <typename Function>
bool Resolve(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

// Returns the functions of the library; null if the library or a basic function is missing. The
// library is never unloaded.
const NvmlApi* LoadNvml() {
  static const NvmlApi* const api = []() -> const NvmlApi* {
    auto loaded = std::make_unique<NvmlApi>();
    loaded->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (loaded->library == nullptr) return nullptr;
    void* const library = loaded->library;
    const bool complete = Resolve(library, "nvmlInit_v2", loaded->init) &&
                          Resolve(library, "nvmlDeviceGetHandleByPciBusId_v2", loaded->by_pci) &&
                          Resolve(library, "nvmlDeviceGetName", loaded->name) &&
                          Resolve(library, "nvmlDeviceGetMemoryInfo", loaded->memory) &&
                          Resolve(library, "nvmlDeviceGetUtilizationRates", loaded->utilization) &&
                          Resolve(library, "nvmlDeviceGetPowerUsage", loaded->power) &&
                          Resolve(library, "nvmlDeviceGetTemperature", loaded->temperature) &&
                          Resolve(library, "nvmlDeviceGetClockInfo", loaded->clock);
    if (!complete || loaded->init() != NVML_SUCCESS) return nullptr;
    Resolve(library, "nvmlSystemGetDriverVersion", loaded->driver_version);
    Resolve(library, "nvmlDeviceGetUUID", loaded->uuid);
    Resolve(library, "nvmlDeviceGetMaxClockInfo", loaded->max_clock);
    Resolve(library, "nvmlDeviceGetEnforcedPowerLimit", loaded->power_limit);
    Resolve(library, "nvmlDeviceGetTotalEnergyConsumption", loaded->energy);
    Resolve(library, "nvmlDeviceGetComputeRunningProcesses_v3", loaded->processes);
    if (!Resolve(library, "nvmlDeviceGetCurrentClocksEventReasons", loaded->clock_reasons)) {
      Resolve(library, "nvmlDeviceGetCurrentClocksThrottleReasons", loaded->clock_reasons);
    }
    Resolve(library, "nvmlGpmQueryDeviceSupport", loaded->gpm_support);
    Resolve(library, "nvmlGpmSampleAlloc", loaded->gpm_alloc);
    Resolve(library, "nvmlGpmSampleFree", loaded->gpm_free);
    Resolve(library, "nvmlGpmSampleGet", loaded->gpm_get);
    Resolve(library, "nvmlGpmMetricsGet", loaded->gpm_metrics);
    return loaded.release();
  }();
  return api;
}

// Held during every call of GPM in this process: driver 580.159.04 crashed in nvmlGpmSampleGet when
// one thread ended a stage while another thread began or ended one.
ABSL_CONST_INIT absl::Mutex gpm_mutex(absl::kConstInit);

class RealGpmSample final : public GpmSample {
 public:
  RealGpmSample(const NvmlApi& api, nvmlGpmSample_t sample) : api_(api), sample_(sample) {}
  ~RealGpmSample() override {
    const absl::MutexLock lock(&gpm_mutex);
    api_.gpm_free(sample_);
  }
  nvmlGpmSample_t get() const { return sample_; }

 private:
  const NvmlApi& api_;
  nvmlGpmSample_t sample_;
};

class RealNvmlDevice final : public NvmlDevice {
 public:
  RealNvmlDevice(const NvmlApi& api, nvmlDevice_t device, GpmUse gpm) : api_(api), device_(device) {
    if (gpm == GpmUse::kOff || !api.has_gpm()) return;
    nvmlGpmSupport_t support = {};
    support.version = NVML_GPM_SUPPORT_VERSION;
    has_gpm_ = api.gpm_support(device, &support) == NVML_SUCCESS && support.isSupportedDevice != 0;
  }

  GpuFacts Describe() const override {
    GpuFacts facts;
    facts.name = Name();
    char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = {};
    if (api_.uuid != nullptr && api_.uuid(device_, text, sizeof(text)) == NVML_SUCCESS) {
      facts.uuid = text;
    }
    char version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = {};
    if (api_.driver_version != nullptr &&
        api_.driver_version(version, sizeof(version)) == NVML_SUCCESS) {
      facts.driver_version = version;
    }
    if (const auto memory = ReadMemory()) facts.memory_total_bytes = memory->total;
    unsigned int value = 0;
    if (api_.power_limit != nullptr && api_.power_limit(device_, &value) == NVML_SUCCESS) {
      facts.power_limit_watts = value / 1000.0;
    }
    facts.sm_clock_max_mhz = MaxClock(NVML_CLOCK_SM);
    facts.memory_clock_max_mhz = MaxClock(NVML_CLOCK_MEM);
    facts.has_gpm = has_gpm_;
    return facts;
  }

  GpuCounters Read() const override {
    GpuCounters counters;
    if (const auto memory = ReadMemory()) {
      counters.memory_used_bytes = memory->used;
      counters.memory_total_bytes = memory->total;
    }
    nvmlUtilization_t rates;
    if (api_.utilization(device_, &rates) == NVML_SUCCESS) counters.utilization_percent = rates.gpu;
    unsigned int value = 0;
    if (api_.power(device_, &value) == NVML_SUCCESS) counters.power_watts = value / 1000.0;
    if (api_.temperature(device_, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS) {
      counters.temperature_celsius = value;
    }
    if (api_.clock(device_, NVML_CLOCK_SM, &value) == NVML_SUCCESS) counters.sm_clock_mhz = value;
    if (api_.clock(device_, NVML_CLOCK_MEM, &value) == NVML_SUCCESS) {
      counters.memory_clock_mhz = value;
    }
    unsigned long long reasons = 0;
    if (api_.clock_reasons != nullptr && api_.clock_reasons(device_, &reasons) == NVML_SUCCESS) {
      counters.throttle_reasons = ThrottleReasonNames(reasons);
    }
    return counters;
  }

  std::optional<double> ReadEnergyJoules() const override {
    unsigned long long millijoules = 0;
    if (api_.energy == nullptr || api_.energy(device_, &millijoules) != NVML_SUCCESS) {
      return std::nullopt;
    }
    return static_cast<double>(millijoules) / 1000.0;
  }

  std::optional<int> CountProcesses() const override {
    if (api_.processes == nullptr) return std::nullopt;
    // If there is no room for entries, the driver returns only their number.
    unsigned int count = 0;
    const nvmlReturn_t result = api_.processes(device_, &count, nullptr);
    if (result != NVML_SUCCESS && result != NVML_ERROR_INSUFFICIENT_SIZE) return std::nullopt;
    return static_cast<int>(count);
  }

  std::unique_ptr<GpmSample> TakeGpmSample() const override {
    if (!has_gpm_) return nullptr;
    nvmlGpmSample_t sample = nullptr;
    {
      const absl::MutexLock lock(&gpm_mutex);
      if (api_.gpm_alloc(&sample) != NVML_SUCCESS) return nullptr;
      if (api_.gpm_get(device_, sample) != NVML_SUCCESS) {
        api_.gpm_free(sample);
        return nullptr;
      }
    }
    return std::make_unique<RealGpmSample>(api_, sample);
  }

  GpmMetrics Between(const GpmSample& from, const GpmSample& to) const override {
    struct Wanted {
      unsigned int id;
      std::optional<double> GpmMetrics::*figure;
    };
    constexpr Wanted kWanted[] = {
        {NVML_GPM_METRIC_SM_UTIL, &GpmMetrics::sm_activity_percent},
        {NVML_GPM_METRIC_SM_OCCUPANCY, &GpmMetrics::sm_occupancy_percent},
        {NVML_GPM_METRIC_ANY_TENSOR_UTIL, &GpmMetrics::tensor_activity_percent},
        {NVML_GPM_METRIC_DRAM_BW_UTIL, &GpmMetrics::dram_bandwidth_percent},
    };
    nvmlGpmMetricsGet_t request = {};
    request.version = NVML_GPM_METRICS_GET_VERSION;
    request.numMetrics = std::size(kWanted);
    request.sample1 = static_cast<const RealGpmSample&>(from).get();
    request.sample2 = static_cast<const RealGpmSample&>(to).get();
    for (size_t i = 0; i < std::size(kWanted); ++i) request.metrics[i].metricId = kWanted[i].id;
    GpmMetrics metrics;
    {
      const absl::MutexLock lock(&gpm_mutex);
      if (api_.gpm_metrics(&request) != NVML_SUCCESS) return metrics;
    }
    for (size_t i = 0; i < std::size(kWanted); ++i) {
      const auto& metric = request.metrics[i];
      if (metric.nvmlReturn != NVML_SUCCESS || !std::isfinite(metric.value)) continue;
      metrics.*kWanted[i].figure = metric.value;
    }
    return metrics;
  }

 private:
  std::string Name() const {
    char name[NVML_DEVICE_NAME_V2_BUFFER_SIZE] = {};
    return api_.name(device_, name, sizeof(name)) == NVML_SUCCESS ? name : "";
  }

  std::optional<double> MaxClock(nvmlClockType_t type) const {
    unsigned int value = 0;
    if (api_.max_clock == nullptr || api_.max_clock(device_, type, &value) != NVML_SUCCESS) {
      return std::nullopt;
    }
    return value;
  }

  std::optional<nvmlMemory_t> ReadMemory() const {
    nvmlMemory_t memory;
    if (api_.memory(device_, &memory) != NVML_SUCCESS) return std::nullopt;
    return memory;
  }

  const NvmlApi& api_;
  const nvmlDevice_t device_;
  bool has_gpm_ = false;
};

}  // namespace

std::vector<std::string> ThrottleReasonNames(uint64_t reasons) {
  struct Reason {
    uint64_t bit;
    const char* name;
  };
  constexpr Reason kReasons[] = {
      {nvmlClocksEventReasonSwPowerCap, "power cap"},
      {nvmlClocksThrottleReasonHwSlowdown, "hardware slowdown"},
      {nvmlClocksEventReasonSyncBoost, "sync boost"},
      {nvmlClocksEventReasonSwThermalSlowdown, "temperature"},
      {nvmlClocksThrottleReasonHwThermalSlowdown, "hardware temperature slowdown"},
      {nvmlClocksThrottleReasonHwPowerBrakeSlowdown, "power brake"},
      {nvmlClocksEventReasonBoardLimit, "board limit"},
      {nvmlClocksEventReasonReliability, "reliability limit"},
  };
  reasons &= ~(nvmlClocksEventReasonGpuIdle | nvmlClocksEventReasonApplicationsClocksSetting |
               nvmlClocksEventReasonDisplayClockSetting);
  std::vector<std::string> names;
  for (const Reason& reason : kReasons) {
    if ((reasons & reason.bit) == 0) continue;
    names.push_back(reason.name);
    reasons &= ~reason.bit;
  }
  if (reasons != 0) names.push_back(absl::StrCat("reason 0x", absl::Hex(reasons)));
  return names;
}

std::unique_ptr<NvmlDevice> OpenNvmlDevice(const std::string& pci_bus_id, GpmUse gpm) {
  const NvmlApi* const api = LoadNvml();
  nvmlDevice_t device = nullptr;
  if (api == nullptr || api->by_pci(pci_bus_id.c_str(), &device) != NVML_SUCCESS) return nullptr;
  return std::make_unique<RealNvmlDevice>(*api, device, gpm);
}

}  // namespace wan
