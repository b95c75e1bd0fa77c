#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "client/reports/ceilings_folder.h"
#include "client/wanctl/exit_code.h"
#include "client/wanctl/interrupt.h"
#include "client/wanctl/wanctl.h"

namespace {

// Returns the width of a terminal in columns; 0 if the descriptor is not a terminal, or one that
// cannot redraw a line.
int TerminalColumns(int fd) {
  const char* const type = std::getenv("TERM");
  if (!isatty(fd) || type == nullptr || std::string_view(type) == "dumb") return 0;
  winsize size;
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

// Any value of NO_COLOR except the empty one turns colours off (https://no-color.org).
bool WantsColours(int columns) {
  const char* const refused = std::getenv("NO_COLOR");
  return columns > 0 && (refused == nullptr || *refused == '\0');
}

std::string EnvironmentOr(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::filesystem::path ProgramFolder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace wan::client;
  // Silence the log of gRPC, because wanctl itself reports errors; but keep the variable if the
  // user has set it.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const InterruptHandler interrupt(kExitCancelled);
  const int out_columns = TerminalColumns(STDOUT_FILENO);
  const int err_columns = TerminalColumns(STDERR_FILENO);
  const Environment environment{.console = {std::cout, std::cerr, out_columns, err_columns,
                                            WantsColours(out_columns), WantsColours(err_columns)},
                                .default_server = EnvironmentOr("WAN_SERVER", "localhost:50051"),
                                .default_token = EnvironmentOr("WAN_TOKEN", ""),
                                .traceparent = EnvironmentOr("TRACEPARENT", ""),
                                .tracestate = EnvironmentOr("TRACESTATE", ""),
                                .data_home = reports::DataHome(),
                                .program_folder = ProgramFolder(),
                                .stop = interrupt.stop(),
                                .open_screen = OpenTerminalScreen};
  return RunWanctl(std::vector<std::string>(argv + 1, argv + argc), environment);
}
