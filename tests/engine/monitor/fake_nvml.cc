#include "tests/engine/monitor/fake_nvml.h"

#include <nvml.h>

#include <atomic>
#include <cstring>
#include <thread>

struct nvmlGpmSample_st {
  int number = 0;
};

namespace wan {
namespace {

std::atomic<int> inside = 0;
std::atomic<int> overlaps = 0;
std::atomic<int> calls = 0;
std::atomic<int> samples = 0;
std::atomic<int> last_number = 0;
int gpu = 0;

// A GPM call: long enough that another thread's would fall into it.
class Call {
 public:
  Call() {
    ++calls;
    if (inside.fetch_add(1) != 0) ++overlaps;
    std::this_thread::yield();
  }
  ~Call() { --inside; }
};

}  // namespace

int FakeNvmlOverlaps() { return overlaps; }
int FakeNvmlGpmCalls() { return calls; }
int FakeNvmlSamples() { return samples; }

}  // namespace wan

extern "C" {

nvmlReturn_t nvmlInit_v2() { return NVML_SUCCESS; }

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device) {
  if (std::strcmp(id, wan::kFakeGpu) != 0) return NVML_ERROR_NOT_FOUND;
  *device = reinterpret_cast<nvmlDevice_t>(&wan::gpu);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char* name, unsigned int size) {
  std::strncpy(name, "Fake GPU", size);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t, nvmlMemory_t* memory) {
  memory->total = 1000;
  memory->free = 400;
  memory->used = 600;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t* rates) {
  rates->gpu = 55;
  rates->memory = 5;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t, unsigned int* milliwatts) {
  *milliwatts = 432'100;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t, nvmlTemperatureSensors_t, unsigned int*) {
  return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t, nvmlClockType_t type, unsigned int* clock) {
  *clock = type == NVML_CLOCK_SM ? 1980 : 3201;
  return NVML_SUCCESS;
}

// Idle, held by the power cap and by its temperature.
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t, unsigned long long* reasons) {
  *reasons = nvmlClocksEventReasonGpuIdle | nvmlClocksEventReasonSwPowerCap |
             nvmlClocksEventReasonSwThermalSlowdown;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  std::strncpy(version, "580.159.04", length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t, char* uuid, unsigned int length) {
  std::strncpy(uuid, "GPU-fake", length);
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t, nvmlClockType_t type, unsigned int* clock) {
  if (type != NVML_CLOCK_SM) return NVML_ERROR_NOT_SUPPORTED;
  *clock = 1980;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t, unsigned int* milliwatts) {
  *milliwatts = 700'000;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t, unsigned long long* millijoules) {
  *millijoules = 12'345'678;
  return NVML_SUCCESS;
}

// Tells how many there are, and that there was no room for them.
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned int* count,
                                                     nvmlProcessInfo_t*) {
  *count = 2;
  return NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t, nvmlGpmSupport_t* support) {
  const wan::Call call;
  support->isSupportedDevice = 1;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t* sample) {
  const wan::Call call;
  *sample = new nvmlGpmSample_st;
  ++wan::samples;
  return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
  const wan::Call call;
  delete sample;
  --wan::samples;
  return NVML_SUCCESS;
}

// Every fourth sample cannot be had.
nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t, nvmlGpmSample_t sample) {
  const wan::Call call;
  sample->number = ++wan::last_number;
  return sample->number % 4 == 0 ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t* request) {
  const wan::Call call;
  for (unsigned int i = 0; i < request->numMetrics; ++i) {
    nvmlGpmMetric_t& metric = request->metrics[i];
    // The bandwidth cannot be had.
    const bool known = metric.metricId != NVML_GPM_METRIC_DRAM_BW_UTIL;
    metric.nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    metric.value = (request->sample2->number - request->sample1->number) *
                   (metric.metricId == NVML_GPM_METRIC_SM_UTIL ? 1 : 0.5);
  }
  return NVML_SUCCESS;
}

}  // extern "C"
