#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "client/wanctl/exit_code.h"
#include "client/wanctl/interrupt.h"
#include "client/wanctl/wanctl.h"

namespace {

// Width of the terminal behind a descriptor; 0 if it is none, or one that cannot redraw a line.
int TerminalColumns(int fd) {
  const char* const type = std::getenv("TERM");
  if (!isatty(fd) || type == nullptr || std::string_view(type) == "dumb") return 0;
  winsize size;
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string EnvironmentOr(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace wan::client;
  // What goes wrong is told by wanctl itself; gRPC's own log is for those who ask for it.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const InterruptHandler interrupt(kExitCancelled);
  const Environment environment{.console = {std::cout, std::cerr, TerminalColumns(STDOUT_FILENO),
                                            TerminalColumns(STDERR_FILENO)},
                                .default_server = EnvironmentOr("WAN_SERVER", "localhost:50051"),
                                .stop = interrupt.stop()};
  return RunWanctl(std::vector<std::string>(argv + 1, argv + argc), environment);
}
