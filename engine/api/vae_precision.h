// The precisions of an autoencoder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wan {

enum class VaePrecision {
  kFp32,
  // fp32, but a GPU may round inputs of products to 11 significant bits. If such an input is beyond
  // fp16's range, kFp32 takes over.
  kTf32,
  // 11 significant bits everywhere. If a value is beyond fp16's range, kBf16 takes over.
  kFp16,
  // 8 significant bits, with the range of fp32.
  kBf16,
};

inline constexpr std::array<VaePrecision, 4> kVaePrecisions = {
    VaePrecision::kFp32, VaePrecision::kTf32, VaePrecision::kFp16, VaePrecision::kBf16};

constexpr std::string_view NameOf(VaePrecision precision) {
  switch (precision) {
    case VaePrecision::kFp32:
      return "fp32";
    case VaePrecision::kTf32:
      return "tf32";
    case VaePrecision::kFp16:
      return "fp16";
    case VaePrecision::kBf16:
      return "bf16";
  }
  return "";
}

// Returns nullopt for any other text.
constexpr std::optional<VaePrecision> ParseVaePrecision(std::string_view text) {
  for (const VaePrecision precision : kVaePrecisions) {
    if (NameOf(precision) == text) return precision;
  }
  return std::nullopt;
}

// The default for models that compute in `dtype` ("fp32" or "bf16"), based on figures in
// docs/design/vae.md.
constexpr VaePrecision DefaultVaePrecision(std::string_view dtype) {
  return dtype == "fp32" ? VaePrecision::kFp32 : VaePrecision::kFp16;
}

// Returns the bytes of an activation's element.
constexpr int64_t ElementBytes(VaePrecision precision) {
  return precision == VaePrecision::kFp16 || precision == VaePrecision::kBf16 ? 2 : 4;
}

// Returns whether a GPU computes with fp16 values, whose range ends at 65504, so that results may
// be infinite or NaN.
constexpr bool MayLeaveFp16(VaePrecision precision) {
  return precision == VaePrecision::kFp16 || precision == VaePrecision::kTf32;
}

}  // namespace wan
