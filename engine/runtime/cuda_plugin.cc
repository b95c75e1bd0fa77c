#include "engine/runtime/cuda_plugin.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "engine/ops/cuda_plugin.h"

namespace wan {
namespace {

// The plug-in's C entry points (engine/cuda/plugin.cc).
struct Plugin {
  int (*device_count)() = nullptr;
  int (*pci_bus_id)(int device, char* out, int size) = nullptr;
  int (*limit_memory)(int device, size_t bytes) = nullptr;
  void (*prepare_allocator)() = nullptr;
};

Plugin& Loaded() {
  static Plugin plugin;
  return plugin;
}

absl::Status Load() {
  absl::StatusOr<void*> library = OpenCudaPlugin();
  if (!library.ok()) return library.status();
  Plugin& plugin = Loaded();
  plugin.device_count = reinterpret_cast<int (*)()>(dlsym(*library, "wan_cuda_device_count"));
  plugin.pci_bus_id =
      reinterpret_cast<int (*)(int, char*, int)>(dlsym(*library, "wan_cuda_pci_bus_id"));
  plugin.limit_memory =
      reinterpret_cast<int (*)(int, size_t)>(dlsym(*library, "wan_cuda_limit_memory"));
  plugin.prepare_allocator =
      reinterpret_cast<void (*)()>(dlsym(*library, "wan_cuda_prepare_allocator"));
  if (plugin.device_count == nullptr || plugin.pci_bus_id == nullptr ||
      plugin.limit_memory == nullptr || plugin.prepare_allocator == nullptr) {
    return absl::UnavailableError("libwan_cuda.so is from another build");
  }
  plugin.prepare_allocator();
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadCudaPlugin() {
  static const absl::Status status = Load();
  return status;
}

int CudaDeviceCount() { return Loaded().device_count(); }

absl::StatusOr<std::string> CudaPciBusId(int device) {
  char text[64] = {};
  if (Loaded().pci_bus_id(device, text, sizeof(text)) != 0) {
    return absl::UnavailableError(absl::StrCat("no PCI bus id for GPU ", device));
  }
  return std::string(text);
}

absl::Status LimitCudaMemory(int device, uint64_t bytes) {
  if (Loaded().limit_memory(device, bytes) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the memory of GPU ", device, " cannot be held to ", bytes, " bytes"));
}

}  // namespace wan
