// Conversions between fp32 and the shorter floating-point formats of files. All functions are pure.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace wan {

// Converts the bits of an IEEE half-precision number.
inline float FromHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent == 31) {
    return mantissa == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  const uint32_t wide = (uint32_t{bits} & 0x8000U) << 16 |
                        static_cast<uint32_t>(exponent + 112) << 23 |
                        static_cast<uint32_t>(mantissa) << 13;
  return std::bit_cast<float>(wide);
}

inline float FromBFloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Converts the bits of an e4m3 number in the variant "fn": it has no infinities, and NaN only where
// all seven low bits are set.
inline float FromE4M3(uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  const float sign = (bits & 0x80) != 0 ? -1.0F : 1.0F;
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -9);
  return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

// Converts the bits of an e5m2 number, which are the upper half of a half-precision number.
inline float FromE5M2(uint8_t bits) { return FromHalf(static_cast<uint16_t>(bits << 8)); }

// Rounds to the nearest bf16 number; a tie goes to the even number.
inline uint16_t ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace wan
