// Runs one target under libFuzzer, which has the main function:
//
//   WAN_FUZZ_TARGET=NAME wan_fuzz [libFuzzer's options] CORPUS...
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/fuzz_target.h"

namespace {

const wan::FuzzTarget& Chosen() {
  const char* const name = std::getenv("WAN_FUZZ_TARGET");
  for (const wan::FuzzTarget& target : wan::FuzzTargets()) {
    if (name != nullptr && target.name == name) return target;
  }
  std::fprintf(stderr, "WAN_FUZZ_TARGET is '%s'; must be one of:", name == nullptr ? "" : name);
  for (const wan::FuzzTarget& target : wan::FuzzTargets()) {
    std::fprintf(stderr, " %.*s", static_cast<int>(target.name.size()), target.name.data());
  }
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const wan::FuzzTarget& target = Chosen();
  target.run({data, size});
  return 0;
}
