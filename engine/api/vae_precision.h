// The precisions in which an autoencoder can compute.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace wan {

enum class VaePrecision {
  kFp32,
  // fp32, but a GPU may round the inputs of products to 11 significant bits. If an input is beyond
  // fp16's range, decoding goes on in kFp32.
  kTf32,
  // All values have 11 significant bits. If a value is beyond fp16's range, decoding goes on in
  // kBf16.
  kFp16,
  // All values have 8 significant bits and the range of fp32.
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

// Returns the precision with this name; nullopt for any other text.
constexpr std::optional<VaePrecision> ParseVaePrecision(std::string_view text) {
  for (const VaePrecision precision : kVaePrecisions) {
    if (NameOf(precision) == text) return precision;
  }
  return std::nullopt;
}

// Returns the default for models that compute in `dtype` ("fp32" or "bf16"); docs/design/vae.md has
// the measurements on which it is based.
constexpr VaePrecision DefaultVaePrecision(std::string_view dtype) {
  return dtype == "fp32" ? VaePrecision::kFp32 : VaePrecision::kFp16;
}

// Returns the bytes of one element of an activation.
constexpr int64_t ElementBytes(VaePrecision precision) {
  return precision == VaePrecision::kFp16 || precision == VaePrecision::kBf16 ? 2 : 4;
}

// Returns whether a GPU computes with fp16 values in this precision. The range of fp16 ends at
// 65504, so results may become infinite or NaN.
constexpr bool MayLeaveFp16(VaePrecision precision) {
  return precision == VaePrecision::kFp16 || precision == VaePrecision::kTf32;
}

}  // namespace wan
