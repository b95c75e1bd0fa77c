// The memory that libraries hold on a device beside every component.
#pragma once

#include <cstdint>

namespace wan {

// The workspace of the matrix libraries: allocated by the first product, and never freed.
inline constexpr uint64_t kLibraryWorkspaceBytes = uint64_t{64} << 20;

}  // namespace wan
