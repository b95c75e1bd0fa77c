#include "engine/media/video_writer.h"

#include "absl/strings/str_cat.h"

namespace wan {

// mkv_writer.cc and mp4_writer.cc define these functions.
#define WAN_VIDEO_FORMAT(kind, open) \
  absl::StatusOr<std::unique_ptr<VideoWriter>> open(const std::string& path, const VideoFormat&);
#include "engine/media/video_formats.def"
#undef WAN_VIDEO_FORMAT

namespace {

constexpr int kMinSide = 16;
constexpr int kMaxSide = 16384;
constexpr int kMaxFps = 1000;

struct RegisteredFormat {
  OutputKind kind;
  absl::StatusOr<std::unique_ptr<VideoWriter>> (*open)(const std::string&, const VideoFormat&);
};

constexpr RegisteredFormat kFormats[] = {
#define WAN_VIDEO_FORMAT(kind, open) {OutputKind::kind, open},
#include "engine/media/video_formats.def"
#undef WAN_VIDEO_FORMAT
};

absl::Status CheckFormat(const VideoFormat& format) {
  for (const int side : {format.width, format.height}) {
    if (side >= kMinSide && side <= kMaxSide) continue;
    return absl::InvalidArgumentError(absl::StrCat("a video of ", format.width, "x", format.height,
                                                   " cannot be written; sides must be from ",
                                                   kMinSide, " to ", kMaxSide));
  }
  if (format.fps < 1 || format.fps > kMaxFps) {
    return absl::InvalidArgumentError(
        absl::StrCat("a video of ", format.fps,
                     " frames a second cannot be written; must be from 1 to ", kMaxFps));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<VideoWriter>> OpenVideoWriter(OutputKind kind,
                                                             const std::string& path,
                                                             const VideoFormat& format) {
  if (absl::Status status = CheckFormat(format); !status.ok()) return status;
  for (const RegisteredFormat& registered : kFormats) {
    if (registered.kind == kind) return registered.open(path, format);
  }
  return absl::InvalidArgumentError(absl::StrCat("output kind ", static_cast<int>(kind), " for ",
                                                 path, " is not a video format"));
}

}  // namespace wan
