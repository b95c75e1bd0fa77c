#include "engine/formats/ggml_types.h"

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "absl/strings/str_join.h"
#include "engine/formats/small_floats.h"

namespace wan {
namespace {

// Numbers of elements in a block of the simple types, and in a "super-block" of the K types.
constexpr size_t kSimple = 32;
constexpr size_t kSuper = 256;

using Block = const uint8_t*;

float HalfAt(Block at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return FromHalf(bits);
}

uint32_t WordAt(Block at) {
  uint32_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

int SignedAt(Block at) { return static_cast<int8_t>(*at); }

int LowBits(uint8_t byte) { return byte & 15; }
int HighBits(uint8_t byte) { return byte >> 4; }

// Q4_0: the scale (half), then 32 numbers of 4 bits. Byte i has number i in its low bits and number
// i + 16 in its high bits. value = scale * (number - 8)
void DecodeQ4_0(Block block, float* out) {
  const float scale = HalfAt(block);
  for (size_t i = 0; i < kSimple / 2; ++i) {
    out[i] = scale * static_cast<float>(LowBits(block[2 + i]) - 8);
    out[i + 16] = scale * static_cast<float>(HighBits(block[2 + i]) - 8);
  }
}

// Q4_1: scale and minimum (halves), then the numbers as in Q4_0. value = scale * number + minimum
void DecodeQ4_1(Block block, float* out) {
  const float scale = HalfAt(block), minimum = HalfAt(block + 2);
  for (size_t i = 0; i < kSimple / 2; ++i) {
    out[i] = scale * static_cast<float>(LowBits(block[4 + i])) + minimum;
    out[i + 16] = scale * static_cast<float>(HighBits(block[4 + i])) + minimum;
  }
}

// Bit i of `fifth` becomes bit 4 of number i.
int FifthBit(uint32_t fifth, size_t i) { return static_cast<int>((fifth >> i) & 1U) << 4; }

// Q5_0: as Q4_0, with 32 fifth bits between scale and numbers. value = scale * (number - 16)
void DecodeQ5_0(Block block, float* out) {
  const float scale = HalfAt(block);
  const uint32_t fifth = WordAt(block + 2);
  for (size_t i = 0; i < kSimple / 2; ++i) {
    const uint8_t byte = block[6 + i];
    out[i] = scale * static_cast<float>((LowBits(byte) | FifthBit(fifth, i)) - 16);
    out[i + 16] = scale * static_cast<float>((HighBits(byte) | FifthBit(fifth, i + 16)) - 16);
  }
}

// Q5_1: as Q4_1, with 32 fifth bits between minimum and numbers.
void DecodeQ5_1(Block block, float* out) {
  const float scale = HalfAt(block), minimum = HalfAt(block + 2);
  const uint32_t fifth = WordAt(block + 4);
  for (size_t i = 0; i < kSimple / 2; ++i) {
    const uint8_t byte = block[8 + i];
    out[i] = scale * static_cast<float>(LowBits(byte) | FifthBit(fifth, i)) + minimum;
    out[i + 16] = scale * static_cast<float>(HighBits(byte) | FifthBit(fifth, i + 16)) + minimum;
  }
}

// Q8_0: the scale (half), then 32 signed bytes. value = scale * number
void DecodeQ8_0(Block block, float* out) {
  const float scale = HalfAt(block);
  for (size_t i = 0; i < kSimple; ++i) out[i] = scale * static_cast<float>(SignedAt(block + 2 + i));
}

// Q2_K: 16 bytes with a scale (low bits) and a minimum (high bits) for each 16 elements, 64 bytes
// with numbers of 2 bits, the scales of scales and of minima (halves). Each half of 128 elements
// has 32 bytes; bits 2j and 2j + 1 of byte i are number 32 j + i of the half.
void DecodeQ2_K(Block block, float* out) {
  const float scale = HalfAt(block + 80), minimum = HalfAt(block + 82);
  for (size_t i = 0; i < kSuper; ++i) {
    const size_t half = i / 128, shift = i % 128 / 32 * 2;
    const uint8_t both = block[i / 16];
    const int number = (block[16 + half * 32 + i % 32] >> shift) & 3;
    out[i] = scale * static_cast<float>(LowBits(both)) * static_cast<float>(number) -
             minimum * static_cast<float>(HighBits(both));
  }
}

// Q3_K: 32 bytes with the third bits (bit b of byte i belongs to number 32 b + i), 64 bytes with
// the lower two bits as in Q2_K, 12 bytes with sixteen scales of 6 bits, the scale of scales. value
// = scale * (scales[i / 16] - 32) * (number - 4)
void DecodeQ3_K(Block block, float* out) {
  const float scale = HalfAt(block + 108);
  const Block packed = block + 96;
  std::array<int, 16> scales{};
  for (size_t i = 0; i < scales.size(); ++i) {
    // The low four bits of scales 0 to 7 are the low halves of bytes 0 to 7, those of scales 8 to
    // 15 the high halves. The high two bits of scale i are bits of byte 8 + i % 4.
    const uint8_t low = packed[i % 8];
    const int four = i < 8 ? LowBits(low) : HighBits(low);
    const int two = (packed[8 + i % 4] >> (2 * (i / 4))) & 3;
    scales[i] = (four | two << 4) - 32;
  }
  for (size_t i = 0; i < kSuper; ++i) {
    const size_t half = i / 128, shift = i % 128 / 32 * 2;
    const int low = (block[32 + half * 32 + i % 32] >> shift) & 3;
    const int third = (block[i % 32] >> (i / 32)) & 1;
    out[i] =
        scale * static_cast<float>(scales[i / 16]) * static_cast<float>((low | third << 2) - 4);
  }
}

// The scale and the minimum of one of the eight parts of a super-block, 6 bits each.
struct PartScale {
  float scale = 0;
  float minimum = 0;
};

// Q4_K and Q5_K begin with the scales of scales and of minima (halves) and 12 bytes: scales 0 to 3
// are the low six bits of bytes 0 to 3, minima 0 to 3 those of bytes 4 to 7. The low four bits of
// scales 4 to 7 are the low halves of bytes 8 to 11, those of the minima the high halves; their
// high two bits are the high bits of bytes 0 to 3 and 4 to 7.
PartScale PartScaleOf(Block block, size_t part) {
  const float scale = HalfAt(block), minimum = HalfAt(block + 2);
  const Block packed = block + 4;
  const int scale_bits =
      part < 4 ? packed[part] & 63 : LowBits(packed[part + 4]) | (packed[part - 4] >> 6) << 4;
  const int minimum_bits =
      part < 4 ? packed[part + 4] & 63 : HighBits(packed[part + 4]) | (packed[part] >> 6) << 4;
  return {scale * static_cast<float>(scale_bits), minimum * static_cast<float>(minimum_bits)};
}

// Q4_K: the scales, then 128 bytes. Parts 2 j and 2 j + 1 of 32 elements are the low and the high
// halves of bytes 32 j to 32 j + 31. value = scale * number - minimum
void DecodeQ4_K(Block block, float* out) {
  for (size_t part = 0; part < 8; ++part) {
    const PartScale scale = PartScaleOf(block, part);
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t byte = block[16 + part / 2 * 32 + i];
      const int number = part % 2 == 0 ? LowBits(byte) : HighBits(byte);
      out[part * 32 + i] = scale.scale * static_cast<float>(number) - scale.minimum;
    }
  }
}

// Q5_K: as Q4_K, with 32 bytes of fifth bits before the numbers; bit `part` of byte i belongs to
// number i of the part.
void DecodeQ5_K(Block block, float* out) {
  for (size_t part = 0; part < 8; ++part) {
    const PartScale scale = PartScaleOf(block, part);
    for (size_t i = 0; i < 32; ++i) {
      const uint8_t byte = block[48 + part / 2 * 32 + i];
      const int fifth = (block[16 + i] >> part & 1) << 4;
      const int number = (part % 2 == 0 ? LowBits(byte) : HighBits(byte)) | fifth;
      out[part * 32 + i] = scale.scale * static_cast<float>(number) - scale.minimum;
    }
  }
}

// Q6_K: 128 bytes with the low four bits, 64 bytes with the high two bits, 16 signed scales, the
// scale of scales. In each half of 128 elements, parts 0 and 1 of 32 elements are the low halves of
// bytes 0 to 63, parts 2 and 3 the high halves; bits 2 p and 2 p + 1 of high byte i belong to
// number i of part p. value = scale * scales[i / 16] * (number - 32)
void DecodeQ6_K(Block block, float* out) {
  const float scale = HalfAt(block + 208);
  for (size_t i = 0; i < kSuper; ++i) {
    const size_t half = i / 128, part = i % 128 / 32;
    const uint8_t byte = block[half * 64 + part % 2 * 32 + i % 32];
    const int low = part < 2 ? LowBits(byte) : HighBits(byte);
    const int high = (block[128 + half * 32 + i % 32] >> (2 * part)) & 3;
    out[i] = scale * static_cast<float>(SignedAt(block + 192 + i / 16)) *
             static_cast<float>((low | high << 4) - 32);
  }
}

class BlockDecoder final : public TensorDecoder {
 public:
  BlockDecoder(std::string_view name, size_t elements, size_t bytes,
               void (*decode)(Block block, float* out))
      : name_(name), elements_(elements), bytes_(bytes), decode_(decode) {}

  std::string_view name() const override { return name_; }
  size_t block_elements() const override { return elements_; }
  size_t block_bytes() const override { return bytes_; }

  void Decode(size_t /*first*/, std::span<const std::byte> codes,
              std::span<uint16_t> out) const override {
    std::array<float, kSuper> values{};
    for (size_t block = 0; block * elements_ < out.size(); ++block) {
      decode_(reinterpret_cast<Block>(codes.subspan(block * bytes_, bytes_).data()), values.data());
      for (size_t i = 0; i < elements_; ++i) out[block * elements_ + i] = ToBFloat16(values[i]);
    }
  }

 private:
  const std::string_view name_;
  const size_t elements_;
  const size_t bytes_;
  void (*const decode_)(Block block, float* out);
};

struct Row {
  uint32_t number;
  GgmlType type;
};

GgmlType Plain(DType dtype) { return {DTypeName(dtype), dtype, nullptr}; }

GgmlType Blocks(std::string_view name, size_t elements, size_t bytes,
                void (*decode)(Block block, float* out)) {
  return {name, std::nullopt, std::make_shared<BlockDecoder>(name, elements, bytes, decode)};
}

GgmlType NotRead(std::string_view name) { return {name, std::nullopt, nullptr}; }

const std::vector<Row>& Rows() {
  // The numbers and the layouts of the types are those of ggml.
  static const std::vector<Row> rows = {
      {0, Plain(DType::kFloat32)},
      {1, Plain(DType::kFloat16)},
      {30, Plain(DType::kBFloat16)},
      {8, Blocks("Q8_0", kSimple, 34, DecodeQ8_0)},
      {14, Blocks("Q6_K", kSuper, 210, DecodeQ6_K)},
      {13, Blocks("Q5_K", kSuper, 176, DecodeQ5_K)},
      {12, Blocks("Q4_K", kSuper, 144, DecodeQ4_K)},
      {11, Blocks("Q3_K", kSuper, 110, DecodeQ3_K)},
      {10, Blocks("Q2_K", kSuper, 84, DecodeQ2_K)},
      {7, Blocks("Q5_1", kSimple, 24, DecodeQ5_1)},
      {6, Blocks("Q5_0", kSimple, 22, DecodeQ5_0)},
      {3, Blocks("Q4_1", kSimple, 20, DecodeQ4_1)},
      {2, Blocks("Q4_0", kSimple, 18, DecodeQ4_0)},
      {9, NotRead("Q8_1")},
      {15, NotRead("Q8_K")},
      {16, NotRead("IQ2_XXS")},
      {17, NotRead("IQ2_XS")},
      {18, NotRead("IQ3_XXS")},
      {19, NotRead("IQ1_S")},
      {20, NotRead("IQ4_NL")},
      {21, NotRead("IQ3_S")},
      {22, NotRead("IQ2_S")},
      {23, NotRead("IQ4_XS")},
      {24, NotRead("I8")},
      {25, NotRead("I16")},
      {26, NotRead("I32")},
      {27, NotRead("I64")},
      {28, NotRead("F64")},
      {29, NotRead("IQ1_M")},
      {34, NotRead("TQ1_0")},
      {35, NotRead("TQ2_0")},
      {39, NotRead("MXFP4")},
      {40, NotRead("NVFP4")},
  };
  return rows;
}

}  // namespace

std::optional<GgmlType> FindGgmlType(uint32_t number) {
  for (const Row& row : Rows()) {
    if (row.number == number) return row.type;
  }
  return std::nullopt;
}

std::string ReadGgmlTypes() {
  std::vector<std::string> names;
  for (const Row& row : Rows()) {
    if (row.type.IsRead()) names.emplace_back(row.type.name);
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace wan
