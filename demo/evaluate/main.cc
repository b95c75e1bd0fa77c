#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "client/wanctl/interrupt.h"
#include "demo/evaluate/commands.h"

int main(int argc, char** argv) {
  // Silence gRPC's own log unless the user has asked for it, because the program itself reports
  // what goes wrong.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const wan::client::InterruptHandler interrupt(wan::client::kExitCancelled);
  return wan::demo::RunDemoEvaluate(std::vector<std::string>(argv + 1, argv + argc),
                                    {.out = std::cout, .err = std::cerr, .stop = interrupt.stop()});
}
