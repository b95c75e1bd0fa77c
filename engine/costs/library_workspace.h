// Memory that libraries hold on a device, besides the components.
#pragma once

#include <cstdint>

namespace wan {

// The matrix libraries' workspace; the first product allocates it, and it is never freed.
inline constexpr uint64_t kLibraryWorkspaceBytes = uint64_t{64} << 20;

}  // namespace wan
