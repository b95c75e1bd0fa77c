#include "server/jobs/device_shares.h"

namespace wan::server {

std::vector<wan::v1::DeviceShare> DeviceShares::Finish() {
  std::vector<wan::v1::DeviceShare> shares;
  if (probe_ == nullptr) return shares;
  for (const DeviceUse& use : probe_->Finish()) {
    wan::v1::DeviceShare& share = shares.emplace_back();
    share.set_device(use.device);
    share.set_name(use.name);
    share.set_uuid(use.uuid);
    const ResourceUsage& usage = use.usage;
    if (usage.sm_activity_percent) share.set_sm_activity_percent(*usage.sm_activity_percent);
    const GpuUsage& gpu = usage.gpu;
    if (gpu.power_watts) share.set_power_watts(*gpu.power_watts);
    if (gpu.energy_joules) share.set_energy_joules(*gpu.energy_joules);
    if (gpu.temperature_peak_celsius) {
      share.set_temperature_peak_celsius(*gpu.temperature_peak_celsius);
    }
    if (gpu.throttled_seconds) share.set_throttled_seconds(*gpu.throttled_seconds);
    if (usage.gpu_memory_peak_bytes) share.set_gpu_memory_peak_bytes(*usage.gpu_memory_peak_bytes);
    if (usage.gpu_weights_peak_bytes) {
      share.set_gpu_weights_peak_bytes(*usage.gpu_weights_peak_bytes);
    }
    if (use.exchanged_bytes) share.set_exchanged_bytes(*use.exchanged_bytes);
    if (use.exchange_seconds) share.set_exchange_seconds(*use.exchange_seconds);
  }
  return shares;
}

}  // namespace wan::server
