#include "engine/device/device_graph.h"

#include <utility>

#include "engine/device/plugin_loader.h"

namespace wan {
namespace {

class PluginGraph final : public DeviceGraph {
 public:
  PluginGraph(const CudaPlugin& plugin, std::shared_ptr<void> graph)
      : plugin_(plugin), graph_(std::move(graph)) {}

  void Replay() override { plugin_.replay_graph(graph_.get()); }

 private:
  const CudaPlugin& plugin_;
  const std::shared_ptr<void> graph_;
};

class PluginRecorder final : public DeviceGraphRecorder {
 public:
  PluginRecorder(const CudaPlugin& plugin, int device) : plugin_(plugin), device_(device) {}

  std::unique_ptr<DeviceGraph> Record(const std::function<void()>& work) override {
    return std::make_unique<PluginGraph>(plugin_, plugin_.record_graph(device_, work));
  }

 private:
  const CudaPlugin& plugin_;
  const int device_;
};

}  // namespace

std::shared_ptr<DeviceGraphRecorder> MakeDeviceGraphRecorder(c10::Device device) {
  const CudaPlugin* const plugin = LoadedCudaPlugin();
  if (!device.is_cuda() || plugin == nullptr) return nullptr;
  return std::make_shared<PluginRecorder>(*plugin, device.index());
}

}  // namespace wan
