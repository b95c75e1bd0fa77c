// Additional samplers besides the engine's own, to measure what one costs a job.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "engine/monitor/machine_monitor.h"

namespace wan {

// One sampler's cost is too small to be seen in a job's time. A few cost a multiple of it; many
// cost more, because they wait for each other. From construction to destruction each of `count`
// monitors samples `device` on its own thread, with a timeline and a stage open, as in a server
// while a job runs. They have no allocator probe, because that belongs to the engine.
class SamplerLoad {
 public:
  SamplerLoad(c10::Device device, int count);

 private:
  struct Monitor {
    std::unique_ptr<MachineMonitor> monitor;
    std::unique_ptr<DeviceTimeline> timeline;
    std::unique_ptr<ResourceProbe> stage;
  };
  std::vector<Monitor> monitors_;
};

}  // namespace wan
