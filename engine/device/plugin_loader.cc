#include "engine/device/plugin_loader.h"

#include <dlfcn.h>

#include <atomic>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/device/compiled_archs.h"

namespace wan {
namespace {

constexpr char kLibrary[] = "libwan_cuda.so";

std::atomic<const CudaPlugin*> loaded_plugin = nullptr;

std::vector<std::string> Candidates() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> candidates;
  // The programs of tests are one folder deeper than the other programs.
  for (std::filesystem::path folder = program.parent_path();
       !error && candidates.size() < 8 && folder.has_relative_path();
       folder = folder.parent_path()) {
    candidates.push_back(folder / "lib" / kLibrary);               // the place in a build folder
    candidates.push_back(folder / "lib" / "wanserve" / kLibrary);  // the place in an installation
  }
  candidates.push_back(kLibrary);
  return candidates;
}

absl::StatusOr<const CudaPlugin*> Load() {
  std::string problems;
  void* library = nullptr;
  for (const std::string& candidate : Candidates()) {
    // With RTLD_GLOBAL, LibTorch's CUDA half registers with the LibTorch that is already loaded.
    library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library != nullptr) break;
    absl::StrAppend(&problems, "; ", dlerror());
  }
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("CUDA is not available: ", kLibrary,
                     " could not be loaded; a build without a CUDA toolkit has none", problems));
  }
  const auto entry = reinterpret_cast<CudaPluginEntry>(dlsym(library, kCudaPluginSymbol));
  const CudaPlugin* const plugin = entry == nullptr ? nullptr : entry();
  if (plugin == nullptr || plugin->table_bytes != sizeof(CudaPlugin)) {
    return absl::UnavailableError(absl::StrCat(
        kLibrary, " belongs to another build of this program; install both from the same build"));
  }
  GetCudaOps() = *plugin->ops;
  GetVaeCudaOps() = *plugin->vae_ops;
  plugin->prepare_allocator();
  loaded_plugin = plugin;
  return plugin;
}

}  // namespace

absl::StatusOr<const CudaPlugin*> LoadCudaPlugin() {
  static const absl::StatusOr<const CudaPlugin*> plugin = Load();
  return plugin;
}

const CudaPlugin* LoadedCudaPlugin() { return loaded_plugin; }

std::string CudaPluginPath() {
  const CudaPlugin* const plugin = loaded_plugin;
  Dl_info info{};
  if (plugin == nullptr || dladdr(plugin, &info) == 0 || info.dli_fname == nullptr) return "";
  return info.dli_fname;
}

int CudaDeviceCount() {
  const absl::StatusOr<const CudaPlugin*> plugin = LoadCudaPlugin();
  return plugin.ok() ? (*plugin)->device_count() : 0;
}

absl::StatusOr<std::string> CudaPciBusId(int device) {
  const absl::StatusOr<const CudaPlugin*> plugin = LoadCudaPlugin();
  if (!plugin.ok()) return plugin.status();
  char text[64] = {};
  if ((*plugin)->pci_bus_id(device, text, sizeof(text)) != 0) {
    return absl::UnavailableError(absl::StrCat("the driver gave no PCI bus id for GPU ", device));
  }
  return std::string(text);
}

absl::Status CheckGpuIsCompiledFor(int device) {
  const absl::StatusOr<const CudaPlugin*> plugin = LoadCudaPlugin();
  if (!plugin.ok()) return plugin.status();
  char card[256] = {};
  if ((*plugin)->describe(device, card, sizeof(card)) != 0) {
    return absl::UnavailableError(absl::StrCat("the driver does not describe GPU ", device));
  }
  return CheckCompiledFor((*plugin)->ops->compute_capability(device), card,
                          (*plugin)->architectures);
}

absl::Status LimitCudaMemory(int device, uint64_t bytes) {
  const absl::StatusOr<const CudaPlugin*> plugin = LoadCudaPlugin();
  if (!plugin.ok()) return plugin.status();
  if ((*plugin)->limit_memory(device, bytes) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the memory of GPU ", device, " cannot be limited to ", bytes,
                   " bytes; the limit must not exceed the card's memory"));
}

}  // namespace wan
