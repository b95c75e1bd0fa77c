// Upstream's two kinds of autoencoders.
#pragma once

#include <string_view>

namespace wan {

// The A14B models have kind 2.1, ti2v-5b has kind 2.2.
enum class VaeKind { kWan21, kWan22 };

// Returns the name of the kind: "2.1" or "2.2".
constexpr std::string_view NameOf(VaeKind kind) { return kind == VaeKind::kWan21 ? "2.1" : "2.2"; }

}  // namespace wan
