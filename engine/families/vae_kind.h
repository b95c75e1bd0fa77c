// Upstream's two autoencoders.
#pragma once

#include <string_view>

namespace wan {

// 2.1 belongs to the A14B models, 2.2 to ti2v-5b.
enum class VaeKind { kWan21, kWan22 };

// Returns "2.1" or "2.2".
constexpr std::string_view NameOf(VaeKind kind) { return kind == VaeKind::kWan21 ? "2.1" : "2.2"; }

}  // namespace wan
