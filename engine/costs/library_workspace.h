// Device memory that libraries hold in addition to the memory of the model's components.
#pragma once

#include <cstdint>

namespace wan {

// Bytes of the workspace that cuBLAS and cuDNN keep. The first product allocates the workspace, and
// nothing frees it.
inline constexpr uint64_t kLibraryWorkspaceBytes = uint64_t{64} << 20;

}  // namespace wan
