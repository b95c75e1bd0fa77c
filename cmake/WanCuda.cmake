# Decides whether WAN_CUDA_ENABLED is set. If there is a toolkit, enables the language CUDA and sets
# WAN_CUDA_INCLUDE_DIRS and WAN_CUDA_LIBRARY_DIR to the folders of its headers and libraries.

set(WAN_CUDA_ENABLED OFF)
set(wan_cuda_absent "")
if(NOT WAN_CUDA)
  set(wan_cuda_absent "WAN_CUDA=${WAN_CUDA}")
else()
  find_program(WAN_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
               PATH_SUFFIXES bin)
  if(NOT WAN_NVCC)
    set(wan_cuda_absent "there is no nvcc (put it in PATH or set CUDA_HOME)")
  else()
    execute_process(COMMAND ${WAN_NVCC} --version OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
    if(NOT version MATCHES "release 13\\.")
      set(wan_cuda_absent "LibTorch is built for CUDA 13, and ${WAN_NVCC} is of another release")
    endif()
  endif()
endif()

if(wan_cuda_absent)
  if(WAN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "WAN_CUDA=ON, but ${wan_cuda_absent}")
  endif()
  message(STATUS "CUDA: none, this build is CPU only: ${wan_cuda_absent}")
  return()
endif()
set(WAN_CUDA_ENABLED ON)

set(CMAKE_CUDA_COMPILER ${WAN_NVCC})
# The architectures are spelled out in WAN_CUDA_FLAGS, because CMake 3.25 does not know '90a'.
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
