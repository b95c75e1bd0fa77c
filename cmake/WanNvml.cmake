# wan::nvml_headers  nvml.h alone. libnvidia-ml.so.1 belongs to the driver and is loaded at run
# time, so that one binary starts on machines with and without a GPU.

set(wan_nvml_include ${WAN_DEPS_DIR}/nvidia/cu13/include)
if(NOT EXISTS ${wan_nvml_include}/nvml.h)
  message(FATAL_ERROR "No nvml.h in ${wan_nvml_include}: run scripts/setup")
endif()
add_library(wan_nvml_headers INTERFACE)
add_library(wan::nvml_headers ALIAS wan_nvml_headers)
target_include_directories(wan_nvml_headers SYSTEM INTERFACE ${wan_nvml_include})
target_link_libraries(wan_nvml_headers INTERFACE ${CMAKE_DL_LIBS})
