// The picture files of the tests' data, and files that are written by hand.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/engine/raw_tensors.h"

namespace wan {

// Files that are pictures: <name>/file with <name>/rgb, and <name>/over if it is transparent.
inline const std::map<std::string, RawTensor>& Decodable() {
  static const auto* tensors = [] {
    const std::string folder = WAN_MEDIA_DATA_DIR;
    auto* read =
        new std::map<std::string, RawTensor>(ReadRawTensors(folder + "/decode.safetensors"));
    read->merge(ReadRawTensors(folder + "/shown.safetensors"));
    return read;
  }();
  return *tensors;
}

inline const std::string& FileOf(const std::string& name) {
  return Decodable().at(name + "/file").bytes;
}

inline std::vector<std::string> DecodableNames() {
  std::set<std::string> names;
  for (const auto& [name, tensor] : Decodable()) names.insert(name.substr(0, name.rfind('/')));
  return {names.begin(), names.end()};
}

// Files that are refused, by name.
inline const std::map<std::string, RawTensor>& Broken() {
  static const auto* tensors = new std::map<std::string, RawTensor>(
      ReadRawTensors(std::string(WAN_MEDIA_DATA_DIR) + "/broken.safetensors"));
  return *tensors;
}

inline std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

inline std::string PngChunk(std::string_view name, std::string_view content) {
  const std::string checked = std::string(name) + std::string(content);
  const auto sum =
      crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
  return BigEndian(static_cast<uint32_t>(content.size()), 4) + checked +
         BigEndian(static_cast<uint32_t>(sum), 4);
}

// A PNG file with these bytes as compressed pixels.
inline std::string PngOf(int width, int height, int bits, int color_type, bool interlaced,
                         std::string_view pixels) {
  const std::string header = BigEndian(static_cast<uint32_t>(width), 4) +
                             BigEndian(static_cast<uint32_t>(height), 4) + static_cast<char>(bits) +
                             static_cast<char>(color_type) + std::string(2, '\0') +
                             static_cast<char>(interlaced);
  return "\x89PNG\r\n\x1a\n" + PngChunk("IHDR", header) + PngChunk("IDAT", pixels) +
         PngChunk("IEND", "");
}

inline std::string JpegSegment(int marker, std::string_view content) {
  return std::string{'\xff', static_cast<char>(marker)} +
         BigEndian(static_cast<uint32_t>(content.size() + 2), 2) + std::string(content);
}

// The beginning of a progressive JPEG file: quantization, size, and Huffman tables in which "0" is
// a difference of 0, and the beginning of a run of 2^14 or more blocks that end at once. The first
// component has 1x1 blocks for each of the others, or 2x2.
inline std::string ProgressiveJpegHeader(int width, int height, int components,
                                         int first_sampling) {
  std::string frame = BigEndian(8, 1) + BigEndian(static_cast<uint32_t>(height), 2) +
                      BigEndian(static_cast<uint32_t>(width), 2) + static_cast<char>(components);
  for (int i = 0; i < components; ++i) {
    const int sampling = i == 0 ? first_sampling : 1;
    frame += {static_cast<char>(i + 1), static_cast<char>(sampling << 4 | sampling), '\0'};
  }
  const std::string one_code = std::string(1, '\1') + std::string(15, '\0');  // of one bit
  return "\xff\xd8" + JpegSegment(0xdb, std::string(1, '\0') + std::string(64, '\1')) +
         JpegSegment(0xc2, frame) + JpegSegment(0xc4, '\0' + one_code + '\0') +
         JpegSegment(0xc4, '\x10' + one_code + '\xe0');
}

// The first scan of a picture of one component: so many blocks of grey.
inline std::string GreyScan(int64_t blocks) {
  const std::string bits(static_cast<size_t>(blocks / 8), '\0');
  return JpegSegment(0xda, std::string_view("\1\1\0\0\0\0", 6)) + bits +
         static_cast<char>(0xff >> (blocks % 8));
}

// A later scan, which adds nothing to at least so many blocks.
inline std::string EmptyScan(int64_t blocks) {
  constexpr int64_t kRun = (1 << 15) - 1;
  std::string bits;
  for (int64_t left = blocks; left > 0; left -= kRun) bits += "0" + std::string(14, '1');
  bits.resize((bits.size() + 7) / 8 * 8, '1');
  std::string data;
  for (size_t i = 0; i < bits.size(); i += 8) {
    int byte = 0;
    for (size_t bit = 0; bit < 8; ++bit) byte = byte << 1 | (bits[i + bit] == '1' ? 1 : 0);
    data.push_back(static_cast<char>(byte));
    if (byte == 0xff) data.push_back('\0');  // no marker
  }
  return JpegSegment(0xda, std::string_view("\1\1\0\1\x3f\0", 6)) + data;
}

}  // namespace wan
