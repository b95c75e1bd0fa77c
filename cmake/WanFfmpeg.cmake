# wan::ffmpeg  libavformat, libavcodec, libswscale, libavutil of the distribution

pkg_check_modules(WAN_AV REQUIRED QUIET IMPORTED_TARGET GLOBAL
                  libavformat libavcodec libswscale libavutil)
add_library(wan_ffmpeg INTERFACE)
add_library(wan::ffmpeg ALIAS wan_ffmpeg)
target_link_libraries(wan_ffmpeg INTERFACE PkgConfig::WAN_AV)
