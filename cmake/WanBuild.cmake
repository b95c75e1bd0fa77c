# Sets the compiler flags for every target of the project.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Static libraries become part of libwan_cuda.so as well.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# The plug-in uses tables of kernels that the program which loads it exports.
set(CMAKE_ENABLE_EXPORTS ON)
# One symbol of LibTorch must resolve to one definition in the server and in the plug-in, so the
# default visibility stays; what matters is that the plug-in links no copy of the engine's CPU code.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

find_program(WAN_CCACHE ccache)
if(WAN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache takes paths below the source folder as relative ones, so that another clone finds what
  # this one has compiled.
  set(WAN_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true
      CCACHE_SLOPPINESS=pch_defines,time_macros ${WAN_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${WAN_LAUNCHER})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WAN_LAUNCHER})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${WAN_LAUNCHER})
endif()

find_program(WAN_MOLD mold)
if(WAN_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Use RPATH, not RUNPATH: then LibTorch's own dependencies are found through the executable's path
# as well, and the binaries start without LD_LIBRARY_PATH.
add_link_options(-Wl,--disable-new-dtags)

# Warnings are for our own code; sources of others are compiled without them. GCC 12 sees overlaps
# in std::string where there are none (its bug 105651), and values that nobody set in a std::variant
# or std::optional that is moved (80635). With a precompiled header it also takes copies of strings
# for too long, because it no longer knows that they are made in a header of the system.
add_library(wan_warnings INTERFACE)
target_compile_options(wan_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wnon-virtual-dtor;-Wno-missing-field-initializers>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-maybe-uninitialized;-Wno-array-bounds;-Wno-stringop-overflow>)

# LibTorch's checks name their file. The path starts at the repository's root, so that the place
# where a program was built leaves no trace in it.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>")

if(WAN_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${WAN_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-g1>)
  add_link_options(-fsanitize=${WAN_SANITIZE})
  if(WAN_SANITIZE MATCHES undefined)
    # A report of UBSan must fail the test that provoked it.
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=undefined>)
  endif()
endif()
if(WAN_SANITIZE STREQUAL "thread")
  set(WAN_SANITIZER_RUNTIME wan_tsan_runtime)  # tests/sanitizers
  # protobuf's headers lay out map fields otherwise for ThreadSanitizer, and the distribution's library
  # was not built so. libstdc++ has to know all the same.
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-U__SANITIZE_THREAD__>
                      $<$<COMPILE_LANGUAGE:C,CXX>:-D_GLIBCXX_TSAN=1>)
  # The libraries of gRPC are the distribution's and not instrumented, so races among them are
  # ignored.
  set(WAN_TEST_ENVIRONMENT
    "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/tsan.supp:ignore_noninstrumented_modules=1")
endif()
