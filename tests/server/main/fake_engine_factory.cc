// The factory of a wanserve without models: every device there is, is a fake one.
#include <memory>

#include "engine/api/engine_factory.h"
#include "tests/fakes/fake_engine.h"

namespace wan {

absl::StatusOr<std::unique_ptr<Engine>> MakeWanEngine(const EngineOptions& options) {
  if (options.device != "cpu") {
    return absl::UnavailableError("device '" + options.device + "': there is none");
  }
  return std::make_unique<fakes::FakeEngine>();
}

}  // namespace wan
