// A group whose ranks are threads that compute on the CPU.
#pragma once

#include <memory>

#include "engine/group/communicator.h"

namespace wan {

// `ranks` must be positive.
std::unique_ptr<CommunicatorGroup> MakeThreadGroup(int ranks);

}  // namespace wan
