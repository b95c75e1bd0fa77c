# wan::torch       LibTorch on the CPU: libtorch_cpu, libc10
# wan::torch_cuda  the CUDA half; only the plug-in links it, and only with WAN_CUDA_ENABLED
#
# The targets are made by hand. find_package(Torch) asks for a whole CUDA toolkit even for a CPU
# build, fails in its GPU detection with CMake 3.25 and CUDA 13, and defines a protobuf target of
# its own. Nothing here needs more than four libraries and two include folders.

set(wan_torch_root ${WAN_DEPS_DIR}/torch)
set(wan_torch_probe ${wan_torch_root}/lib/libtorch_cpu.so)
if(WAN_CUDA_ENABLED)
  list(APPEND wan_torch_probe ${wan_torch_root}/lib/libtorch_cuda.so)
endif()
foreach(library IN LISTS wan_torch_probe)
  if(NOT EXISTS ${library})
    message(FATAL_ERROR "No ${library}: run scripts/setup, or point WAN_DEPS_DIR at a folder that "
                        "it filled on a machine like this one")
  endif()
endforeach()

# libtorch_cpu.so names libcudart and libcupti among its dependencies even on machines without a
# GPU: the toolkit has them, or scripts/setup has put the wheels' copies here.
set(wan_torch_runtime_dirs ${WAN_DEPS_DIR}/nvidia/cu13/lib)
if(WAN_CUDA_ENABLED)
  list(PREPEND wan_torch_runtime_dirs ${WAN_CUDA_LIBRARY_DIR})
endif()
# Programs in the build folder find these libraries there; the install rules (WanInstall) replace
# the path.
set(CMAKE_BUILD_RPATH ${wan_torch_runtime_dirs})
set(wan_torch_rpaths ${wan_torch_runtime_dirs})
list(TRANSFORM wan_torch_rpaths PREPEND -Wl,-rpath-link,)

function(wan_import_shared target path)
  add_library(${target} SHARED IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${path})
endfunction()

wan_import_shared(wan::libc10 ${wan_torch_root}/lib/libc10.so)
wan_import_shared(wan::libtorch_cpu ${wan_torch_root}/lib/libtorch_cpu.so)

add_library(wan_torch INTERFACE)
add_library(wan::torch ALIAS wan_torch)
target_include_directories(wan_torch SYSTEM INTERFACE
  ${wan_torch_root}/include
  ${wan_torch_root}/include/torch/csrc/api/include)
target_link_libraries(wan_torch INTERFACE wan::libtorch_cpu wan::libc10 Threads::Threads)
target_link_options(wan_torch INTERFACE ${wan_torch_rpaths})

if(WAN_CUDA_ENABLED)
  wan_import_shared(wan::libc10_cuda ${wan_torch_root}/lib/libc10_cuda.so)
  wan_import_shared(wan::libtorch_cuda ${wan_torch_root}/lib/libtorch_cuda.so)
  wan_import_shared(wan::libcudart ${WAN_CUDA_LIBRARY_DIR}/libcudart.so)

  add_library(wan_torch_cuda INTERFACE)
  add_library(wan::torch_cuda ALIAS wan_torch_cuda)
  target_include_directories(wan_torch_cuda SYSTEM INTERFACE ${WAN_CUDA_INCLUDE_DIRS})
  target_link_libraries(wan_torch_cuda INTERFACE
    wan_torch wan::libtorch_cuda wan::libc10_cuda wan::libcudart)
  # What libtorch_cuda.so needs beyond the toolkit is in folders beside it, to which LibTorch's own
  # RPATH leads the loader; only the linker must be told the folders.
  file(GLOB wan_nvidia_dirs ${WAN_DEPS_DIR}/nvidia/*/lib)
  list(TRANSFORM wan_nvidia_dirs PREPEND -Wl,-rpath-link,)
  target_link_options(wan_torch_cuda INTERFACE ${wan_nvidia_dirs})
endif()
