// Where the weights of a model's components are kept. docs/operate/memory.md says when each policy
// pays off.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/model_parts.h"

namespace wan {

enum class ResidencyPolicy {
  kAuto,      // the plan of each request picks kResident, kHost, kStream or kDisk
  kResident,  // on the device all the time
  kHost,      // in pinned host memory; on the device while the component works
  kStream,    // in pinned host memory; each block is copied while the previous one computes
  kDisk,      // only in the checkpoint's files; read whenever the component works
  kCpu,       // in host memory; the component computes on the CPU
};

// Returns "auto", "resident", "host", "stream", "disk" or "cpu".
std::string_view ResidencyPolicyName(ResidencyPolicy policy);
// Returns the policy with this name; nullopt for any other text.
std::optional<ResidencyPolicy> ParseResidencyPolicy(std::string_view name);

// A component, and the policy for its weights.
struct ComponentResidency {
  ModelComponent component = ModelComponent::kTextEncoder;
  ResidencyPolicy policy = ResidencyPolicy::kAuto;

  friend bool operator==(const ComponentResidency&, const ComponentResidency&) = default;
};

// Parses text such as "vae=host"; nullopt if the component or the policy is unknown.
std::optional<ComponentResidency> ParseComponentResidency(std::string_view text);

// The tiles into which each frame is cut when it is decoded. With a grid of one tile, frames are
// decoded whole.
struct TileGrid {
  int rows = 1;
  int columns = 1;

  bool IsWhole() const { return rows == 1 && columns == 1; }
  friend bool operator==(const TileGrid&, const TileGrid&) = default;
};

}  // namespace wan
