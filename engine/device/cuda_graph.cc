#include "engine/device/cuda_graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

namespace wan {
namespace {

// The stream and the memory with which all graphs of a GPU are recorded.
struct Recording {
  // All graphs share one stream, because matrix libraries hold a workspace for each stream.
  c10::cuda::CUDAStream stream;
  // The pool of memory that the graphs share. LibTorch requires a new pool once the last graph is
  // gone.
  at::cuda::MempoolId_t pool{0, 0};
  std::weak_ptr<void> users;
};

// A recorded graph; `user` keeps the shared pool alive.
struct RecordedGraph {
  at::cuda::CUDAGraph graph;
  std::shared_ptr<void> user;
};

std::mutex recordings_mutex;

Recording& RecordingOf(c10::DeviceIndex device) {
  static auto* const recordings = new std::map<c10::DeviceIndex, Recording>();
  const auto found = recordings->find(device);
  if (found != recordings->end()) return found->second;
  const c10::cuda::CUDAStream stream =
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device);
  return recordings->emplace(device, Recording{stream}).first->second;
}

// Ends a recording that failed. If capture_end itself fails, also ends the rest of the recording.
void Abandon(at::cuda::CUDAGraph& graph, c10::DeviceIndex device, at::cuda::MempoolId_t pool) {
  try {
    graph.capture_end();
    return;
  } catch (const std::exception&) {
  }
  try {
    c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool);
    c10::cuda::CUDACachingAllocator::releasePool(device, pool);
  } catch (const std::exception&) {
  }
  cudaGetLastError();  // clear the recording's error, so that no later call sees it
}

}  // namespace

std::shared_ptr<void> RecordCudaGraph(int device, const std::function<void()>& work) {
  const auto index = static_cast<c10::DeviceIndex>(device);
  const std::lock_guard<std::mutex> lock(recordings_mutex);
  const c10::cuda::CUDAGuard on_device(index);
  Recording& recording = RecordingOf(index);
  auto recorded = std::make_shared<RecordedGraph>();
  recorded->user = recording.users.lock();
  if (recorded->user == nullptr) {
    recording.pool = at::cuda::graph_pool_handle();
    recorded->user = std::make_shared<int>();
    recording.users = recorded->user;
  }
  const c10::cuda::CUDAStreamGuard on_stream(recording.stream);
  // Other threads may copy weights and frames meanwhile, which does not disturb the recording.
  recorded->graph.capture_begin(recording.pool, cudaStreamCaptureModeThreadLocal);
  try {
    work();
  } catch (...) {
    Abandon(recorded->graph, index, recording.pool);
    throw;
  }
  try {
    recorded->graph.capture_end();
  } catch (...) {
    Abandon(recorded->graph, index, recording.pool);
    throw;
  }
  return recorded;
}

void ReplayCudaGraph(void* graph) { static_cast<RecordedGraph*>(graph)->graph.replay(); }

}  // namespace wan
