// The precisions of an autoencoder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wan {

enum class VaePrecision {
  kFp32,
  // fp32, but a GPU may round the inputs of products to 11 significant bits. Where such an input is
  // too large for fp16 the work is done in kFp32.
  kTf32,
  // 11 significant bits everywhere. Where a value is too large for it the work is done in kBf16.
  kFp16,
  // 8 significant bits, and the range of fp32.
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

// Returns nullopt for a text that is none of these names.
constexpr std::optional<VaePrecision> ParseVaePrecision(std::string_view text) {
  for (const VaePrecision precision : kVaePrecisions) {
    if (NameOf(precision) == text) return precision;
  }
  return std::nullopt;
}

// The default beside models that compute in `dtype` ("fp32" or "bf16"); docs/design/vae.md has the
// figures that it was chosen by.
constexpr VaePrecision DefaultVaePrecision(std::string_view dtype) {
  return dtype == "fp32" ? VaePrecision::kFp32 : VaePrecision::kFp16;
}

// Returns the bytes of a value of the activations.
constexpr int64_t ElementBytes(VaePrecision precision) {
  return precision == VaePrecision::kFp16 || precision == VaePrecision::kBf16 ? 2 : 4;
}

// Returns whether a GPU computes with values of fp16, which end at 65504, so that results may be
// infinite or no number.
constexpr bool MayLeaveFp16(VaePrecision precision) {
  return precision == VaePrecision::kFp16 || precision == VaePrecision::kTf32;
}

}  // namespace wan
