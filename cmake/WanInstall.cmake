# Rules for `cmake --install` and `cpack`: two components, which become two packages. Nothing in
# them depends on the folder in which they were built.
#
#   server  bin/{wanserve,wanctl,wan_inspect}  lib/wanserve: LibTorch's CPU half  share/wanserve: the
#           demo model, an example of the settings, what is bundled  share/doc/wanserve: the pages, and what they link to
#   cuda    lib/wanserve: the plug-in, LibTorch's CUDA half and NVIDIA's libraries
#
# LibTorch and NVIDIA's libraries are bundled, because no distribution has these versions. Their
# files have the same places relative to each other as in their wheels, torch/lib beside
# nvidia/*/lib, so that their own run paths are right.

# Only what is installed is built first; the tests are not.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(wan_private lib/wanserve)
set(wan_bundled "")  # lines of share/wanserve/bundled*.txt: origin, name, version, digest

# wan_install_library(COMPONENT SONAME FOLDER...): installs the file to which the name leads, from
# the first folder that has it. If no folder has it, the installation fails, not a build that nobody
# installs.
function(wan_install_library component soname)
  foreach(folder IN LISTS ARGN)
    if(EXISTS ${folder}/${soname})
      file(REAL_PATH ${folder}/${soname} file)
      install(FILES ${file} DESTINATION ${wan_private}/nvidia/cu13/lib RENAME ${soname}
              COMPONENT ${component})
      get_filename_component(name ${file} NAME)
      string(REGEX REPLACE "\\.so.*" "" library ${name})
      string(REGEX REPLACE ".*\\.so\\.?" "" version ${name})
      set(wan_bundled ${wan_bundled} "nvidia ${library} ${version}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  install(CODE "message(FATAL_ERROR \"no ${soname} in ${ARGN}: run scripts/setup\")"
          COMPONENT ${component})
endfunction()

# wan_install_wheels(PACKAGE...): records the pinned wheels whose files are bundled or compiled in.
function(wan_install_wheels)
  foreach(package IN LISTS ARGN)
    file(STRINGS ${PROJECT_SOURCE_DIR}/scripts/wheels.txt line REGEX "^${package}==")
    string(REGEX REPLACE "^(.*)==([^ ]*) --hash=(.*)$" "pypi \\1 \\2 \\3" line "${line}")
    list(APPEND wan_bundled "${line}")
  endforeach()
  set(wan_bundled ${wan_bundled} PARENT_SCOPE)
endfunction()

function(wan_install_bundled component file)
  list(JOIN wan_bundled "\n" text)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/install/${file} CONTENT "@text@\n" @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/install/${file} DESTINATION share/wanserve
          COMPONENT ${component})
endfunction()

# The server: its programs, and LibTorch's CPU half, which needs two of CUDA's libraries on every
# machine.
foreach(program wanserve wanctl wan_inspect wan_bench)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH
      "$ORIGIN/../${wan_private}/torch/lib;$ORIGIN/../${wan_private}/nvidia/cu13/lib")
    install(TARGETS ${program} DESTINATION bin COMPONENT server)
  endif()
endforeach()
install(FILES ${wan_torch_root}/lib/libtorch_cpu.so ${wan_torch_root}/lib/libc10.so
              ${wan_torch_root}/lib/libgomp.so.1
        DESTINATION ${wan_private}/torch/lib COMPONENT server)
foreach(library libcudart.so.13 libcupti.so.13)
  wan_install_library(server ${library} ${wan_torch_runtime_dirs})
endforeach()
wan_install_wheels(torch sentencepiece googleapis-common-protos nvidia-nvml-dev)
wan_install_bundled(server bundled.txt)
# When it is installed, wanctl prints its completions into the folders where the distributions'
# shells look for them.
set(wan_completion_bash bash-completion/completions/wanctl)
set(wan_completion_zsh zsh/vendor-completions/_wanctl)
set(wan_completion_fish fish/vendor_completions.d/wanctl.fish)
foreach(shell bash zsh fish)
  set(file ${PROJECT_BINARY_DIR}/install/completion.${shell})
  install(CODE "execute_process(COMMAND \"$<TARGET_FILE:wanctl>\" completion ${shell}
                                OUTPUT_FILE \"${file}\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT server)
  cmake_path(GET wan_completion_${shell} PARENT_PATH folder)
  cmake_path(GET wan_completion_${shell} FILENAME name)
  install(FILES ${file} DESTINATION share/${folder} RENAME ${name} COMPONENT server)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/demo/model/ DESTINATION share/wanserve/demo COMPONENT server)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/deploy/profiles DESTINATION share/wanserve COMPONENT server)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/debian/config.yaml DESTINATION share/wanserve COMPONENT server)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/wanserve.service DESTINATION lib/systemd/system
        COMPONENT server)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/deploy/models/wanserve-fetch-model
                 ${PROJECT_SOURCE_DIR}/deploy/image/wanserve-sbom
        DESTINATION bin COMPONENT server)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/deploy/models DESTINATION share/wanserve COMPONENT server
        FILES_MATCHING PATTERN *.txt)
foreach(file LICENSE NOTICE README.md)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${file})
    install(FILES ${PROJECT_SOURCE_DIR}/${file} DESTINATION share/doc/wanserve COMPONENT server)
  endif()
endforeach()
# The pages, and the files to which they link, at the same places relative to each other.
if(EXISTS ${PROJECT_SOURCE_DIR}/docs)
  install(DIRECTORY docs deploy proto DESTINATION share/doc/wanserve COMPONENT server
          PATTERN __pycache__ EXCLUDE PATTERN CMakeLists.txt EXCLUDE PATTERN enum_words.h EXCLUDE
          PATTERN enum_words.cc EXCLUDE)
  install(FILES demo/README.md demo/EVALUATION.md DESTINATION share/doc/wanserve/demo COMPONENT server)
endif()
file(GLOB wan_torch_licenses ${WAN_DEPS_DIR}/torch-*.dist-info/licenses)
install(DIRECTORY ${wan_torch_licenses} DESTINATION share/doc/wanserve/torch COMPONENT server)

# The plug-in.
set(CPACK_COMPONENTS_ALL server)
if(WAN_CUDA_ENABLED)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set_target_properties(wan_cuda PROPERTIES INSTALL_RPATH "$ORIGIN/torch/lib;$ORIGIN/nvidia/cu13/lib")
  install(TARGETS wan_cuda DESTINATION ${wan_private} COMPONENT cuda)
  foreach(library libtorch libtorch_cuda libtorch_cuda_linalg libtorch_nvshmem libc10_cuda libcaffe2_nvrtc)
    install(FILES ${wan_torch_root}/lib/${library}.so DESTINATION ${wan_private}/torch/lib COMPONENT cuda)
  endforeach()
  file(GLOB wan_nvidia_libraries ${WAN_DEPS_DIR}/nvidia/*/lib)
  set(wan_bundled "")
  # The libraries of LibTorch, those that they load by name, and those that these need.
  foreach(library
      libcublas.so.13 libcublasLt.so.13 libcufft.so.12 libcufile.so.0 libcurand.so.10 libcusolver.so.12
      libcusparse.so.12 libcusparseLt.so.0 libnccl.so.2 libnvJitLink.so.13 libnvrtc.so.13
      libnvrtc-builtins.so.13.0 libnvshmem_host.so.3
      libcudnn.so.9 libcudnn_adv.so.9 libcudnn_cnn.so.9 libcudnn_engines_precompiled.so.9
      libcudnn_engines_runtime_compiled.so.9 libcudnn_graph.so.9 libcudnn_heuristic.so.9 libcudnn_ops.so.9)
    wan_install_library(cuda ${library} ${WAN_CUDA_LIBRARY_DIR} ${wan_nvidia_libraries})
  endforeach()
  wan_install_bundled(cuda bundled-cuda.txt)
endif()

# The packages (scripts/package).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME wanserve)
set(CPACK_PACKAGE_CONTACT "The developers of wanserve <wanserve@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_SECTION video)
set(CPACK_DEBIAN_SERVER_PACKAGE_NAME wanserve)
set(CPACK_DEBIAN_SERVER_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${wan_torch_root}/lib ${wan_torch_runtime_dirs})
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "passwd, ca-certificates")
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS "curl")
set(CPACK_DEBIAN_SERVER_DESCRIPTION
    "One long-lived process keeps Wan2.2 models warm, queues requests, and streams every step back.")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/deploy/debian/postinst ${PROJECT_SOURCE_DIR}/deploy/debian/prerm
    ${PROJECT_SOURCE_DIR}/deploy/debian/postrm)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME wanserve-cuda)
# The libraries of LibTorch and NVIDIA need from the distribution only what the server needs as
# well.
set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "wanserve (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_CUDA_DESCRIPTION
    "The plug-in with which wanserve computes on NVIDIA GPUs, with LibTorch's CUDA half. The driver is the host's.")
include(CPack)
