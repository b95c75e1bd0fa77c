// A kernel that ends in a trap.
#pragma once

namespace wan {

// Queues it on the device's default stream. Once it has run, every call to CUDA of this process
// fails for good. False if it could not be queued.
bool LaunchTrap(int device);

}  // namespace wan
