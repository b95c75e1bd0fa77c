# Makes precompiled headers: what takes long to parse is parsed once for all targets that include
# it.
#
# Nobody declares which targets use which header: wan_precompile, which is called when all targets
# are known, looks at what they link. Every source still includes what it uses; scripts/check proves
# that by a build with CMAKE_DISABLE_PRECOMPILE_HEADERS=ON.

# Libraries and programs have the same flags, because a precompiled header fits only one set of
# flags.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-pthread>)

# Code that only tests run is compiled with less optimization, which takes two thirds of the time;
# the code under test is compiled as it is delivered.
set(WAN_TEST_OPTIMISATION $<$<CONFIG:Release>:-O1>)

set(WAN_STANDARD_HEADERS
  <algorithm> <cstdint> <functional> <map> <memory> <optional> <span> <string> <string_view>
  <unordered_map> <utility> <vector>
  <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/synchronization/mutex.h> <absl/time/time.h>)
set(WAN_TORCH_HEADERS <ATen/Context.h> <ATen/TensorOperators.h> <ATen/core/Tensor.h>)
set(WAN_PROTO_HEADERS
  <wan/v1/administration.pb.h> <wan/v1/generation.pb.h> <wan/v1/model_management.pb.h>
  <wan/v1/telemetry.pb.h> <wan/v1/video_generation.pb.h>)
set(WAN_TEST_HEADERS <gmock/gmock.h> <gtest/gtest.h>)

# wan_note_target(NAME): lets wan_precompile look at the target.
function(wan_note_target name)
  set_property(GLOBAL APPEND PROPERTY WAN_NOTED_TARGETS ${name})
endfunction()

# wan_closure(OUT TARGET): returns all targets that TARGET depends on, itself included.
function(wan_closure out target)
  set(seen "")
  set(queue ${target})
  while(queue)
    list(POP_FRONT queue next)
    if(next IN_LIST seen OR NOT TARGET ${next})
      continue()
    endif()
    list(APPEND seen ${next})
    set(property INTERFACE_LINK_LIBRARIES)
    if(next STREQUAL target)
      set(property LINK_LIBRARIES)
    endif()
    get_target_property(linked ${next} ${property})
    if(linked)
      list(APPEND queue ${linked})
    endif()
    get_target_property(real ${next} ALIASED_TARGET)
    if(real)
      list(APPEND queue ${real})
    endif()
  endwhile()
  set(${out} ${seen} PARENT_SCOPE)
endfunction()

# wan_header_set(NAME HEADERS header... DEPS target...): the target wan_headers_NAME.
function(wan_header_set name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;DEPS")
  set(source ${PROJECT_BINARY_DIR}/precompiled/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "// Nothing: its target is there for the precompiled header.\n")
  add_library(wan_headers_${name} OBJECT ${source})
  target_link_libraries(wan_headers_${name} PRIVATE ${arg_DEPS} wan_warnings)
  if(GTest::gmock IN_LIST arg_DEPS)
    target_compile_options(wan_headers_${name} PRIVATE ${WAN_TEST_OPTIMISATION})
  endif()
  target_precompile_headers(wan_headers_${name} PRIVATE ${arg_HEADERS} ${WAN_STANDARD_HEADERS})
endfunction()

function(wan_precompile)
  set(abseil absl::statusor absl::strings absl::synchronization absl::time)
  wan_header_set(torch HEADERS ${WAN_TORCH_HEADERS} DEPS wan::torch ${abseil})
  wan_header_set(proto HEADERS ${WAN_PROTO_HEADERS} DEPS wan_proto ${abseil})
  wan_header_set(torch_test HEADERS ${WAN_TORCH_HEADERS} ${WAN_TEST_HEADERS}
                 DEPS wan::torch GTest::gmock ${abseil})
  wan_header_set(proto_test HEADERS ${WAN_PROTO_HEADERS} ${WAN_TEST_HEADERS}
                 DEPS wan_proto GTest::gmock ${abseil})
  wan_header_set(test HEADERS ${WAN_TEST_HEADERS} DEPS GTest::gmock ${abseil})

  get_property(targets GLOBAL PROPERTY WAN_NOTED_TARGETS)
  foreach(target IN LISTS targets)
    wan_closure(seen ${target})
    set(name "")
    if(wan_torch IN_LIST seen)
      set(name torch)
    elseif(wan_proto IN_LIST seen)
      set(name proto)
    endif()
    if(GTest::gmock IN_LIST seen)
      string(JOIN _ name ${name} test)
    endif()
    if(name)
      target_precompile_headers(${target} REUSE_FROM wan_headers_${name})
    endif()
  endforeach()
endfunction()
