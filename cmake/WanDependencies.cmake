# Finds the targets of third parties. Distribution packages come through their own CMake files; a
# dependency that needs more than find_package has a file in this folder.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# Use module mode, because it defines protobuf_generate(); gRPC's package would look for protobuf
# anyway.
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(absl CONFIG REQUIRED)
# Asio and Beast consist of headers only.
find_package(Boost 1.74 REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(SQLiteCpp CONFIG REQUIRED)
find_package(yaml-cpp CONFIG REQUIRED)
find_package(JPEG REQUIRED)
find_package(CURL 7.85 REQUIRED)
find_package(ICU REQUIRED COMPONENTS uc i18n)
find_package(OpenSSL REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(GTest REQUIRED)

pkg_check_modules(WAN_HTTPLIB REQUIRED QUIET IMPORTED_TARGET GLOBAL cpp-httplib)
add_library(wan::httplib ALIAS PkgConfig::WAN_HTTPLIB)

pkg_check_modules(WAN_WEBP REQUIRED QUIET IMPORTED_TARGET GLOBAL libwebp)
add_library(wan::webp ALIAS PkgConfig::WAN_WEBP)

pkg_check_modules(WAN_LIBPQ REQUIRED QUIET IMPORTED_TARGET GLOBAL libpq>=14)
add_library(wan::libpq ALIAS PkgConfig::WAN_LIBPQ)

pkg_check_modules(WAN_SYSTEMD REQUIRED QUIET IMPORTED_TARGET GLOBAL libsystemd)
add_library(wan::systemd ALIAS PkgConfig::WAN_SYSTEMD)

# yaml-cpp 0.8 renamed its target and warns about the old name.
add_library(wan_yaml INTERFACE)
add_library(wan::yaml ALIAS wan_yaml)
target_link_libraries(wan_yaml INTERFACE
  $<IF:$<TARGET_EXISTS:yaml-cpp::yaml-cpp>,yaml-cpp::yaml-cpp,yaml-cpp>)

include(WanCuda)
include(WanTorch)
include(WanSentencePiece)
include(WanFfmpeg)
include(WanNvml)
