// Where the weights of a model's components live. docs/memory.md tells when which policy pays.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wan {

enum class ResidencyPolicy {
  kAuto,      // one of the first three below, decided for each request
  kResident,  // on the device all the time
  kHost,      // in locked host memory; on the device while the component works
  kStream,  // in locked host memory; block by block on the device, the next one while one computes
  kCpu,     // in host memory, and computed there
};

// "auto", "resident", "host", "stream", "cpu".
std::string_view ResidencyPolicyName(ResidencyPolicy policy);
// Nullopt for any other text.
std::optional<ResidencyPolicy> ParseResidencyPolicy(std::string_view name);

// One component's.
struct ComponentResidency {
  // "text_encoder", "transformer" and "transformer_2" (the experts in the checkpoint's order: high
  // noise, low noise), "vae".
  std::string component;
  ResidencyPolicy policy = ResidencyPolicy::kAuto;

  friend bool operator==(const ComponentResidency&, const ComponentResidency&) = default;
};

// "vae=host". Nullopt for a component or a policy that does not exist.
std::optional<ComponentResidency> ParseComponentResidency(std::string_view text);

// Tiles that a decoder cuts every frame into; one is the whole frame.
struct TileGrid {
  int rows = 1;
  int columns = 1;

  bool IsWhole() const { return rows == 1 && columns == 1; }
  friend bool operator==(const TileGrid&, const TileGrid&) = default;
};

}  // namespace wan
