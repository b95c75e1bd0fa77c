// The CUDA half of device_graph.h, compiled into libwan_cuda.so.
#pragma once

#include <functional>
#include <memory>

namespace wan {

// Implements DeviceGraphRecorder::Record.
std::shared_ptr<void> RecordCudaGraph(int device, const std::function<void()>& work);

// Implements DeviceGraph::Replay for a result of RecordCudaGraph.
void ReplayCudaGraph(void* graph);

}  // namespace wan
