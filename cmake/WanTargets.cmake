# Defines the functions that make the project's own targets.

set(WAN_GOLDEN_DIR ${PROJECT_SOURCE_DIR}/tests/golden)
set(WAN_CHECKPOINT_DIR ${PROJECT_BINARY_DIR}/golden/checkpoints)

# wan_library(NAME [SOURCES file...] [PUBLIC target...] [PRIVATE target...])
#
# A static library; headers are included by their path from the repository's root. Without SOURCES
# the library is header-only. PUBLIC names what its headers need, PRIVATE what only its sources
# need: LibTorch is PRIVATE wherever the header can do without it.
function(wan_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "wan_library(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SOURCES)
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} INTERFACE ${arg_PUBLIC} ${arg_PRIVATE})
    return()
  endif()
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE} wan_warnings)
  wan_note_target(${name})
endfunction()

# wan_binary(NAME SOURCES file... DEPS target...)  ->  build/bin/NAME
function(wan_binary name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "wan_binary(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} wan_warnings ${WAN_SANITIZER_RUNTIME})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  wan_note_target(${name})
endfunction()

# wan_test(NAME SOURCES file... DEPS target... [LABELS label...] [TIMEOUT seconds])
#
# Makes a GoogleTest program under ctest with the label 'unit', unless LABELS says otherwise, and
# the label of its area, which is the first folder below tests/. The target 'tests_LABEL' builds all
# tests with a label. Sources can use the macros WAN_GOLDEN_DIR (tests/golden), WAN_CHECKPOINT_DIR
# (the golden checkpoints, which a fixture unpacks) and WAN_BINARY_DIR (build/bin).
function(wan_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;DEPS;LABELS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "wan_test(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${name} PRIVATE
    WAN_GOLDEN_DIR="${WAN_GOLDEN_DIR}"
    WAN_CHECKPOINT_DIR="${WAN_CHECKPOINT_DIR}"
    WAN_BINARY_DIR="${PROJECT_BINARY_DIR}/bin")
  target_link_libraries(${name} PRIVATE
    ${arg_DEPS} GTest::gmock GTest::gtest_main wan_warnings ${WAN_SANITIZER_RUNTIME})
  target_compile_options(${name} PRIVATE ${WAN_TEST_OPTIMISATION})
  wan_note_target(${name})

  file(RELATIVE_PATH area ${PROJECT_SOURCE_DIR}/tests ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" area ${area})
  list(APPEND arg_LABELS ${area})
  foreach(label IN LISTS arg_LABELS)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()

  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES
    LABELS "${arg_LABELS}"
    TIMEOUT ${arg_TIMEOUT}
    FIXTURES_REQUIRED golden
    # The golden tensors were computed by one thread, and ctest runs several tests at a time.
    ENVIRONMENT "OMP_NUM_THREADS=1;${WAN_TEST_ENVIRONMENT}")
endfunction()

# Adds those of the named child folders (default: all, in the order of their names) that have a
# CMakeLists.txt.
function(wan_add_subdirectories)
  set(children ${ARGN})
  if(NOT children)
    file(GLOB lists RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS
         ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
    foreach(list IN LISTS lists)
      get_filename_component(child ${list} DIRECTORY)
      list(APPEND children ${child})
    endforeach()
    list(SORT children)
  endif()
  foreach(child IN LISTS children)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${child}/CMakeLists.txt)
      add_subdirectory(${child})
    endif()
  endforeach()
endfunction()
