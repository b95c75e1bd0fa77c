// A library for LD_PRELOAD that breaks the GPU context of a program that knows nothing of it: when
// the file that WAN_TEST_TRAP_FILE names appears, a trap is launched on GPU 0.
// scripts/gpu/check_failures loses a real server's device with it.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/gpu/trap.h"

namespace {

const bool kStarted = [] {
  const char* const file = std::getenv("WAN_TEST_TRAP_FILE");
  if (file == nullptr) return false;
  std::thread([path = std::string(file)] {
    while (access(path.c_str(), F_OK) != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    wan::LaunchTrap(0);
  }).detach();
  return true;
}();

}  // namespace
