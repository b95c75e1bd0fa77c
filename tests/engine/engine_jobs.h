// Jobs of a whole engine, for tests that compare what comes out of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/recorder.h"

namespace wan {

// One policy for every component that a model may have.
inline std::vector<ComponentResidency> Everywhere(ResidencyPolicy policy) {
  return {{ModelComponent::kTextEncoder, policy},
          {ModelComponent::kTransformer, policy},
          {ModelComponent::kTransformer2, policy},
          {ModelComponent::kVae, policy}};
}

// The bytes of the latents file of a request; what else it leaves lies in `folder`, too.
inline absl::StatusOr<std::string> GenerateLatents(Engine& engine, const GenerationRequest& request,
                                                   const std::filesystem::path& folder,
                                                   std::vector<TelemetrySink*> sinks = {}) {
  const absl::StatusOr<GenerationPlan> plan = engine.Plan(request);
  if (!plan.ok()) return plan.status();
  Recorder recorder(SystemClock(), engine.Monitor(), std::move(sinks));
  GenerationObserver observer;
  const std::vector<OutputFile> outputs = {{OutputKind::kLatents, folder / "latents"},
                                           {OutputKind::kLosslessMkv, folder / "video.mkv"}};
  if (absl::Status status = engine.Generate(*plan, outputs, recorder, observer, {}); !status.ok()) {
    return status;
  }
  std::ifstream in(outputs[0].path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace wan
