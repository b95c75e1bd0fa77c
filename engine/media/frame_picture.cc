#include "engine/api/frame_picture.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "engine/media/image_encode.h"
#include "engine/media/image_resize.h"
#include "engine/media/rgb_image.h"
#include "engine/media/video_reader.h"

namespace wan {
namespace {

class GridPicture final : public FramePicture {
 public:
  GridPicture(std::unique_ptr<VideoReader> reader, const FrameGrid& grid)
      : reader_(std::move(reader)), grid_(grid) {
    cell_.width = std::min(grid.most_width, reader_->width());
    cell_.height = std::max<int>(
        1, static_cast<int>((int64_t{cell_.width} * reader_->height() + reader_->width() / 2) /
                            reader_->width()));
    const int rows = (grid.shown + grid.columns - 1) / grid.columns;
    picture_.width = cell_.width * grid.columns;
    picture_.height = cell_.height * rows;
    picture_.pixels.resize(static_cast<size_t>(picture_.width) *
                           static_cast<size_t>(picture_.height) * 3);
  }

  absl::StatusOr<bool> Step() override {
    const int wanted =
        grid_.shown == 1
            ? 0
            : static_cast<int>(int64_t{cells_} * (grid_.frames - 1) / (grid_.shown - 1));
    for (; frame_ < wanted; ++frame_) {
      const absl::StatusOr<bool> skipped = reader_->Skip();
      if (!skipped.ok()) return skipped.status();
      if (!*skipped) return Short();
    }
    RgbImage image{reader_->width(), reader_->height(), {}};
    const absl::StatusOr<bool> read = reader_->Read(image.pixels);
    if (!read.ok()) return read.status();
    if (!*read) return Short();
    ++frame_;
    absl::StatusOr<RgbImage> small = ResizeLanczos(image, cell_);
    if (!small.ok()) return small.status();
    Paste(*small);
    return ++cells_ == grid_.shown;
  }

  absl::StatusOr<std::string> Jpeg() const override {
    return EncodeJpeg(picture_.pixels, picture_.width, picture_.height);
  }

 private:
  static absl::Status Short() {
    return absl::DataLossError("the video has fewer frames than it should have");
  }

  void Paste(const RgbImage& small) {
    const size_t row = static_cast<size_t>(cell_.width) * 3;
    const size_t stride = static_cast<size_t>(picture_.width) * 3;
    const size_t left = static_cast<size_t>(cells_ % grid_.columns) * row;
    const size_t top = static_cast<size_t>(cells_ / grid_.columns) * cell_.height;
    for (size_t y = 0; y < static_cast<size_t>(cell_.height); ++y) {
      std::copy_n(small.pixels.begin() + static_cast<ptrdiff_t>(y * row), row,
                  picture_.pixels.begin() + static_cast<ptrdiff_t>((top + y) * stride + left));
    }
  }

  const std::unique_ptr<VideoReader> reader_;
  const FrameGrid grid_;
  ImageSize cell_;
  RgbImage picture_;
  int frame_ = 0;  // the number of frames that were read
  int cells_ = 0;  // the number of frames that the picture has
};

}  // namespace

absl::StatusOr<std::unique_ptr<FramePicture>> OpenFramePicture(FileBytes file,
                                                               const FrameGrid& grid) {
  if (grid.shown < 1 || grid.shown > grid.frames || grid.columns < 1 || grid.columns > grid.shown ||
      grid.most_width < 1) {
    return absl::InvalidArgumentError("the grid of frames is not within its bounds");
  }
  absl::StatusOr<std::unique_ptr<VideoReader>> reader = OpenVideoReader(std::move(file));
  if (!reader.ok()) return reader.status();
  return std::make_unique<GridPicture>(*std::move(reader), grid);
}

}  // namespace wan
