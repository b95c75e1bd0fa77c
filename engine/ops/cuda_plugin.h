// libwan_cuda.so: our kernels and LibTorch's CUDA half. A program that is asked for a GPU loads it
// at run time, so that the same program starts where there is none.
#pragma once

#include "absl/status/statusor.h"

namespace wan {

// Loads the plug-in and enters its kernels into the operators' tables, once: later calls give the
// first result, a handle for dlsym(). Looked for in ../lib and lib beside the running program, then
// on the loader's own path. UNAVAILABLE says what is missing.
//
// To be called before the first operator on a CUDA device: the tables are not guarded.
absl::StatusOr<void*> OpenCudaPlugin();

}  // namespace wan
