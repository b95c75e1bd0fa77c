// A libwan_cuda.so with one GPU of compute capability 7.5, and with kernels for 8.0 and 9.0 alone.
#include <cstdio>

#include "engine/device/plugin_abi.h"

namespace {

int Describe(int /*device*/, char* out, int size) {
  std::snprintf(out, static_cast<size_t>(size), "NVIDIA Tesla T4");
  return 0;
}

}  // namespace

extern "C" const wan::CudaPlugin* wan_cuda_plugin() {
  static wan::CudaOps ops;
  static const wan::VaeCudaOps vae_ops;
  static wan::CudaPlugin plugin;
  ops.compute_capability = [](int) { return 75; };
  plugin.ops = &ops;
  plugin.vae_ops = &vae_ops;
  plugin.architectures = "80;90a";
  plugin.device_count = [] { return 1; };
  plugin.prepare_allocator = [] {};
  plugin.describe = &Describe;
  return &plugin;
}
