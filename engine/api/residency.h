// The places of the weights of a model's components. docs/operate/memory.md says when each policy
// pays.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/model_parts.h"

namespace wan {

enum class ResidencyPolicy {
  kAuto,      // the plan of each request picks one of the next four
  kResident,  // on the device all the time
  kHost,      // in locked host memory; copied to the device while the component works
  kStream,    // in locked host memory; copied block by block, each while the one before computes
  kDisk,      // nowhere but in the checkpoint's files; read while the component works
  kCpu,       // in host memory; the CPU computes the component
};

// Returns "auto", "resident", "host", "stream", "disk" or "cpu".
std::string_view ResidencyPolicyName(ResidencyPolicy policy);
// The inverse of ResidencyPolicyName; returns nullopt for any other text.
std::optional<ResidencyPolicy> ParseResidencyPolicy(std::string_view name);

// The policy of one component.
struct ComponentResidency {
  ModelComponent component = ModelComponent::kTextEncoder;
  ResidencyPolicy policy = ResidencyPolicy::kAuto;

  friend bool operator==(const ComponentResidency&, const ComponentResidency&) = default;
};

// Parses text such as "vae=host"; returns nullopt for a component or a policy that does not exist.
std::optional<ComponentResidency> ParseComponentResidency(std::string_view text);

// The tiles into which the decoder cuts every frame. A grid of one tile is the whole frame.
struct TileGrid {
  int rows = 1;
  int columns = 1;

  bool IsWhole() const { return rows == 1 && columns == 1; }
  friend bool operator==(const TileGrid&, const TileGrid&) = default;
};

}  // namespace wan
