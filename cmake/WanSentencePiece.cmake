# wan::sentencepiece  the tokenizer's runtime, a static library built from the source distribution
#
# The distribution's package contains a copy of protobuf and exports its symbols, which aborts a
# process that also runs gRPC. Built from source, the library uses the same protobuf as everything
# else.

set(wan_sentencepiece_root ${WAN_DEPS_DIR}/sentencepiece)
if(NOT EXISTS ${wan_sentencepiece_root}/CMakeLists.txt)
  message(FATAL_ERROR "No sentencepiece source in ${WAN_DEPS_DIR}: run scripts/setup")
endif()

function(wan_add_sentencepiece)
  set(SPM_PROTOBUF_PROVIDER package CACHE STRING "" FORCE)
  set(SPM_ENABLE_SHARED OFF CACHE BOOL "" FORCE)
  set(SPM_ENABLE_TCMALLOC OFF CACHE BOOL "" FORCE)
  set(CMAKE_WARN_DEPRECATED OFF)
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING)
  add_subdirectory(${wan_sentencepiece_root} ${PROJECT_BINARY_DIR}/third_party/sentencepiece
                   EXCLUDE_FROM_ALL)
endfunction()
wan_add_sentencepiece()
target_compile_options(sentencepiece-static PRIVATE -w)

add_library(wan_sentencepiece INTERFACE)
add_library(wan::sentencepiece ALIAS wan_sentencepiece)
# The second folder has the messages of the model file (sentencepiece_model.pb.h).
target_include_directories(wan_sentencepiece SYSTEM INTERFACE
  ${wan_sentencepiece_root}/src ${PROJECT_BINARY_DIR}/third_party/sentencepiece/src)
target_link_libraries(wan_sentencepiece INTERFACE sentencepiece-static protobuf::libprotobuf)
