// Pictures for tests of video files, and what a player finds in such a file.
#pragma once

#include <gtest/gtest.h>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>
}

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/media/video_writer.h"

namespace wan {

using Rgb24 = std::vector<uint8_t>;

// What a player finds in a file.
struct VideoFile {
  std::string container;
  std::string codec;
  std::string pixel_format;
  int width = 0;
  int height = 0;
  double fps = 0;
  double seconds = 0;
  AVColorSpace color_space = AVCOL_SPC_UNSPECIFIED;
  AVColorRange color_range = AVCOL_RANGE_UNSPECIFIED;
  AVColorPrimaries color_primaries = AVCOL_PRI_UNSPECIFIED;
  int keyframes = 0;
  std::vector<double> times;  // of the frames, seconds
};

// Decodes a file and shows every frame. Ends the test if the file is not a video.
inline VideoFile ReadVideo(const std::string& path,
                           const std::function<void(const AVFrame&)>& on_frame) {
  VideoFile file;
  AVFormatContext* demuxer = nullptr;
  EXPECT_EQ(avformat_open_input(&demuxer, ("file:" + path).c_str(), nullptr, nullptr), 0) << path;
  if (demuxer == nullptr) return file;
  EXPECT_GE(avformat_find_stream_info(demuxer, nullptr), 0);
  EXPECT_EQ(demuxer->nb_streams, 1u);
  const AVStream& stream = *demuxer->streams[0];
  file.container = demuxer->iformat->name;
  file.codec = avcodec_get_name(stream.codecpar->codec_id);
  file.pixel_format = av_get_pix_fmt_name(static_cast<AVPixelFormat>(stream.codecpar->format));
  file.width = stream.codecpar->width;
  file.height = stream.codecpar->height;
  file.fps = av_q2d(stream.avg_frame_rate);
  file.seconds = static_cast<double>(demuxer->duration) / AV_TIME_BASE;
  file.color_space = stream.codecpar->color_space;
  file.color_range = stream.codecpar->color_range;
  file.color_primaries = stream.codecpar->color_primaries;

  AVCodecContext* decoder = avcodec_alloc_context3(avcodec_find_decoder(stream.codecpar->codec_id));
  avcodec_parameters_to_context(decoder, stream.codecpar);
  decoder->err_recognition = AV_EF_EXPLODE | AV_EF_CRCCHECK;
  decoder->thread_count = 1;
  EXPECT_EQ(avcodec_open2(decoder, nullptr, nullptr), 0);
  AVPacket* packet = av_packet_alloc();
  AVFrame* frame = av_frame_alloc();
  const auto drain = [&] {
    while (avcodec_receive_frame(decoder, frame) == 0) {
      file.times.push_back(static_cast<double>(frame->pts) * av_q2d(stream.time_base));
      on_frame(*frame);
    }
  };
  while (av_read_frame(demuxer, packet) == 0) {
    if ((packet->flags & AV_PKT_FLAG_KEY) != 0) ++file.keyframes;
    EXPECT_EQ(avcodec_send_packet(decoder, packet), 0);
    av_packet_unref(packet);
    drain();
  }
  EXPECT_EQ(avcodec_send_packet(decoder, nullptr), 0);
  drain();
  av_frame_free(&frame);
  av_packet_free(&packet);
  avcodec_free_context(&decoder);
  avformat_close_input(&demuxer);
  return file;
}

inline Rgb24 Noise(const VideoFormat& format, unsigned seed) {
  std::mt19937 random(seed);
  Rgb24 frame(static_cast<size_t>(format.width) * format.height * 3);
  for (uint8_t& value : frame) value = static_cast<uint8_t>(random());
  return frame;
}

inline Rgb24 Flat(const VideoFormat& format, std::array<uint8_t, 3> color) {
  Rgb24 frame;
  for (int i = 0; i < format.width * format.height; ++i) {
    frame.insert(frame.end(), color.begin(), color.end());
  }
  return frame;
}

// A soft picture that moves with time.
inline Rgb24 Moving(const VideoFormat& format, int t) {
  Rgb24 frame;
  for (int y = 0; y < format.height; ++y) {
    for (int x = 0; x < format.width; ++x) {
      frame.push_back(static_cast<uint8_t>(128 + 90 * std::sin((x + 3 * t) / 17.0)));
      frame.push_back(static_cast<uint8_t>(128 + 90 * std::cos((y - 2 * t) / 13.0)));
      frame.push_back(static_cast<uint8_t>(255 * x / format.width));
    }
  }
  return frame;
}

}  // namespace wan
