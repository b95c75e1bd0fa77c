#include "engine/api/device_monitor.h"

namespace wan {
namespace {

class PlainReader final : public DeviceReader {
 public:
  explicit PlainReader(DeviceMonitor& monitor) : monitor_(monitor) {}
  std::vector<DeviceSample> Sample() override { return monitor_.Sample(); }

 private:
  DeviceMonitor& monitor_;
};

}  // namespace

std::unique_ptr<DeviceReader> DeviceMonitor::StartReader() {
  return std::make_unique<PlainReader>(*this);
}

}  // namespace wan
