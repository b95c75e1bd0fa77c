#include "benchmarks/sampler_load.h"

#include <string>
#include <utility>

#include "engine/device/plugin_loader.h"

namespace wan {

SamplerLoad::SamplerLoad(c10::Device device, int count) {
  for (int i = 0; i < count; ++i) {
    std::unique_ptr<NvmlDevice> card;
    if (device.is_cuda()) {
      if (const auto bus_id = CudaPciBusId(device.index()); bus_id.ok()) {
        card = OpenNvmlDevice(*bus_id);
      }
    }
    Monitor& added = monitors_.emplace_back();
    added.monitor =
        std::make_unique<MachineMonitor>(device.is_cuda() ? device.str() : std::string(),
                                         /*allocator=*/nullptr, std::move(card));
    added.monitor->StartSampling();
    added.timeline = added.monitor->StartTimeline();
    added.stage = added.monitor->StartProbe();
  }
}

}  // namespace wan
