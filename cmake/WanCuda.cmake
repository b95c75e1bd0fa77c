# Decides WAN_CUDA_ENABLED. With a toolkit: language CUDA and, in WAN_CUDA_INCLUDE_DIRS and
# WAN_CUDA_LIBRARY_DIR, where its headers and libraries lie.

set(WAN_CUDA_ENABLED OFF)
find_program(WAN_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(WAN_CUDA STREQUAL "AUTO")
  if(WAN_NVCC)
    set(WAN_CUDA_ENABLED ON)
  endif()
elseif(WAN_CUDA)
  if(NOT WAN_NVCC)
    message(FATAL_ERROR "WAN_CUDA=ON, but there is no nvcc: put it in PATH or set CUDA_HOME")
  endif()
  set(WAN_CUDA_ENABLED ON)
endif()

if(NOT WAN_CUDA_ENABLED)
  message(STATUS "CUDA: none, this build is CPU only")
  return()
endif()

set(CMAKE_CUDA_COMPILER ${WAN_NVCC})
# Architectures are spelled out in WAN_CUDA_FLAGS: CMake 3.25 does not know '90a'.
set(CMAKE_CUDA_ARCHITECTURES OFF)
enable_language(CUDA)
# CMake 3.25 has no flag for C++20 with this nvcc.
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)

set(WAN_CUDA_FLAGS "")
foreach(arch IN LISTS WAN_CUDA_ARCHS)
  list(APPEND WAN_CUDA_FLAGS "SHELL:-gencode arch=compute_${arch},code=sm_${arch}")
endforeach()

get_filename_component(wan_nvcc_real ${WAN_NVCC} REALPATH)
get_filename_component(WAN_CUDA_ROOT ${wan_nvcc_real}/../.. ABSOLUTE)
set(WAN_CUDA_INCLUDE_DIRS ${WAN_CUDA_ROOT}/include)
if(EXISTS ${WAN_CUDA_ROOT}/include/cccl)
  list(APPEND WAN_CUDA_INCLUDE_DIRS ${WAN_CUDA_ROOT}/include/cccl)
endif()
find_path(WAN_CUDA_LIBRARY_DIR libcudart.so PATHS ${WAN_CUDA_ROOT}/lib64 ${WAN_CUDA_ROOT}/lib
          NO_DEFAULT_PATH REQUIRED)

string(REPLACE ";" " " wan_cuda_archs "${WAN_CUDA_ARCHS}")
message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${wan_cuda_archs}")
