#include "engine/ops/cuda_plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ops/cuda_ops.h"
#include "engine/ops/vae_cuda_ops.h"

namespace wan {
namespace {

constexpr char kLibrary[] = "libwan_cuda.so";

std::vector<std::string> Candidates() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> candidates;
  // Tests lie one folder deeper than the programs.
  for (std::filesystem::path folder = program.parent_path();
       !error && candidates.size() < 4 && folder.has_relative_path();
       folder = folder.parent_path()) {
    candidates.push_back(folder / "lib" / kLibrary);
  }
  candidates.push_back(kLibrary);
  return candidates;
}

absl::StatusOr<void*> Open() {
  std::string problems;
  void* library = nullptr;
  for (const std::string& candidate : Candidates()) {
    // Global, so that LibTorch's CUDA half registers with the LibTorch already in the process.
    library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library != nullptr) break;
    absl::StrAppend(&problems, "; ", dlerror());
  }
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no CUDA support: ", kLibrary,
                     " could not be loaded (was the build made with a CUDA toolkit?)", problems));
  }
  const auto copy_kernels =
      reinterpret_cast<void (*)(CudaOps*, VaeCudaOps*)>(dlsym(library, "wan_cuda_copy_kernels"));
  if (copy_kernels == nullptr) {
    return absl::UnavailableError(absl::StrCat(kLibrary, " is from another build"));
  }
  copy_kernels(&GetCudaOps(), &GetVaeCudaOps());
  return library;
}

}  // namespace

absl::StatusOr<void*> OpenCudaPlugin() {
  static const absl::StatusOr<void*> plugin = Open();
  return plugin;
}

}  // namespace wan
