#include "server/config/idle_threads.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace wan::server {
namespace {

constexpr char kWaitPolicy[] = "OMP_WAIT_POLICY";
constexpr char kSpinCount[] = "GOMP_SPINCOUNT";
constexpr char kThisProgram[] = "/proc/self/exe";

}  // namespace

void MakeIdleThreadsSleep(char** argv) {
  if (std::getenv(kWaitPolicy) != nullptr || std::getenv(kSpinCount) != nullptr) return;
  if (setenv(kWaitPolicy, "PASSIVE", /*overwrite=*/0) != 0) return;
  // By its own path, because the process takes its name from the path that is executed.
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink(kThisProgram, error);
  if (!error) execv(program.c_str(), argv);
  // The file has been moved or replaced since the start.
  execv(kThisProgram, argv);
}

}  // namespace wan::server
