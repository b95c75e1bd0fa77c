// Where the weights of a model's components are. docs/operate/memory.md says when each policy pays
// off.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/model_parts.h"

namespace wan {

enum class ResidencyPolicy {
  kAuto,      // each request's plan picks one of the next four
  kResident,  // on the device all the time
  kHost,      // in pinned host memory; on the device while the component works
  kStream,    // in pinned host memory; copied block by block, each during the previous one's work
  kDisk,      // only in the checkpoint's files; read while the component works
  kCpu,       // in host memory; the component computes on the CPU
};

// Returns "auto", "resident", "host", "stream", "disk" or "cpu".
std::string_view ResidencyPolicyName(ResidencyPolicy policy);
// Inverse of ResidencyPolicyName; nullopt for any other text.
std::optional<ResidencyPolicy> ParseResidencyPolicy(std::string_view name);

// The policy of one component.
struct ComponentResidency {
  ModelComponent component = ModelComponent::kTextEncoder;
  ResidencyPolicy policy = ResidencyPolicy::kAuto;

  friend bool operator==(const ComponentResidency&, const ComponentResidency&) = default;
};

// Parses text such as "vae=host"; nullopt for an unknown component or policy.
std::optional<ComponentResidency> ParseComponentResidency(std::string_view text);

// The tiles into which every frame is cut for decoding. A grid of one tile means whole frames.
struct TileGrid {
  int rows = 1;
  int columns = 1;

  bool IsWhole() const { return rows == 1 && columns == 1; }
  friend bool operator==(const TileGrid&, const TileGrid&) = default;
};

}  // namespace wan
