// Implements device_graph.h for CUDA; compiled into libwan_cuda.so.
#pragma once

#include <functional>
#include <memory>

namespace wan {

// Implements DeviceGraphRecorder::Record.
std::shared_ptr<void> RecordCudaGraph(int device, const std::function<void()>& work);

// Implements DeviceGraph::Replay for a graph that RecordCudaGraph returned.
void ReplayCudaGraph(void* graph);

}  // namespace wan
