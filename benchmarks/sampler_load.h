// Further samplers beside the engine's own, to measure what one costs a job.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "engine/monitor/machine_monitor.h"

namespace wan {

// The cost of one sampler is too small to be seen in a job's time. A few cost a multiple of it;
// many cost more than that, since they wait for each other. From construction to destruction each
// of `count` monitors samples `device` on a thread of its own and has a timeline and a stage open,
// as a server has while a job runs. They have no probe of the allocator, which belongs to the
// engine.
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
