// Loads the CUDA plug-in before the tests and ends with 1 if there is none, or no GPU.
#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "engine/device/library_defaults.h"
#include "engine/device/plugin_loader.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (const auto plugin = wan::LoadCudaPlugin(); !plugin.ok()) {
    std::fprintf(stderr, "%s\n", plugin.status().ToString().c_str());
    return 1;
  }
  try {
    at::globalContext().lazyInitDevice(at::kCUDA);
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "no GPU: %s\n", error.what_without_backtrace());
    return 1;
  }
  wan::ReplaceLibraryDefaults();
  at::globalContext().setAllowTF32CuDNN(false);
  return RUN_ALL_TESTS();
}
