#include "server/process/idle_threads.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace wan::server {
namespace {

constexpr char kWaitPolicy[] = "OMP_WAIT_POLICY";
constexpr char kSpinCount[] = "GOMP_SPINCOUNT";
// How often libgomp's loop spins before the thread sleeps. Of 300, 1,000, 10,000, 30,000 and the
// default 300,000, this is the least that does not slow down a single server; from 10,000 on, two
// servers on two cores delay each other.
constexpr char kTurns[] = "300";
constexpr char kThisProgram[] = "/proc/self/exe";

}  // namespace

void MakeIdleThreadsSleep(char** argv) {
  if (std::getenv(kWaitPolicy) != nullptr || std::getenv(kSpinCount) != nullptr) return;
  if (setenv(kSpinCount, kTurns, /*overwrite=*/0) != 0) return;
  // Execute the file by its real path, because the process gets its name from the path.
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink(kThisProgram, error);
  if (!error) execv(program.c_str(), argv);
  // If the file was moved or replaced since the start, execv above fails, so try the link.
  execv(kThisProgram, argv);
}

}  // namespace wan::server
