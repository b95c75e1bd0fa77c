// The engine of wanserve_with_fake_engine.
#include <cstdlib>
#include <memory>

#include "engine/api/engine_factory.h"
#include "tests/fakes/fake_engine.h"

namespace wan {

// Environment variables: WAN_FAKE_HOLD names a stage at which the engine stops until it is asked to
// end; with WAN_FAKE_DEAF it does not hear that;
// WAN_FAKE_LOSE_DEVICE names one at which its device is lost; WAN_FAKE_OUTPUT_BYTES is the least
// size of an artifact.
absl::StatusOr<std::unique_ptr<Engine>> MakeWanEngine(const std::vector<std::string>& devices,
                                                      const EngineOptions& /*options*/) {
  for (const std::string& device : devices) {
    if (device != "cpu") return absl::UnavailableError("device '" + device + "': there is none");
  }
  auto engine = std::make_unique<fakes::FakeEngine>();
  if (const char* const stage = std::getenv("WAN_FAKE_HOLD")) engine->Hold(stage);
  if (std::getenv("WAN_FAKE_DEAF") != nullptr) engine->HearNoStop();
  if (const char* const bytes = std::getenv("WAN_FAKE_OUTPUT_BYTES")) {
    engine->PadOutputs(std::strtoull(bytes, nullptr, 10));
  }
  if (const char* const stage = std::getenv("WAN_FAKE_LOSE_DEVICE")) engine->LoseDeviceAt(stage);
  return engine;
}

}  // namespace wan
