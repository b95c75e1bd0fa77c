#include "server/process/idle_threads.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace wan::server {
namespace {

constexpr char kWaitPolicy[] = "OMP_WAIT_POLICY";
constexpr char kSpinCount[] = "GOMP_SPINCOUNT";
// Turns of libgomp's waiting loop. Tried: 300, 1,000, 10,000, 30,000 and libgomp's default 300,000.
// This is the least that costs nothing for one server; from 10,000 on two servers on two cores
// delay each other.
constexpr char kTurns[] = "300";
constexpr char kThisProgram[] = "/proc/self/exe";

}  // namespace

void MakeIdleThreadsSleep(char** argv) {
  if (std::getenv(kWaitPolicy) != nullptr || std::getenv(kSpinCount) != nullptr) return;
  if (setenv(kSpinCount, kTurns, /*overwrite=*/0) != 0) return;
  // By its own path, because the process takes its name from the path that is executed.
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink(kThisProgram, error);
  if (!error) execv(program.c_str(), argv);
  // The file has been moved or replaced since the start.
  execv(kThisProgram, argv);
}

}  // namespace wan::server
