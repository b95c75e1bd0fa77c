// Runs additional samplers, to measure what one of them costs a job.
#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "engine/monitor/machine_monitor.h"

namespace wan {

// One sampler costs too little to be seen in the time of a job. A few samplers together cost enough
// to be measured. Many samplers cost more than in proportion, because they wait for each other. As
// long as the object lives, each of `count` monitors samples `device` on a thread of its own. Each
// monitor has a timeline and a stage open, as a server has while a job runs. These monitors have no
// allocator probe: only one probe may exist, and the engine has it.
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
