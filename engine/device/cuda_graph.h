// The CUDA side of device_graph.h, which is compiled into libwan_cuda.so.
#pragma once

#include <functional>
#include <memory>

namespace wan {

// DeviceGraphRecorder::Record.
std::shared_ptr<void> RecordCudaGraph(int device, const std::function<void()>& work);

// DeviceGraph::Replay of what RecordCudaGraph returned.
void ReplayCudaGraph(void* graph);

}  // namespace wan
