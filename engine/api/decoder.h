// The networks that can make a video's frames of its latents.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace wan {

enum class Decoder {
  // The autoencoder's own decoder.
  kFull,
  // A small network that was trained to come near the full one: TAEW2.1 or TAEW2.2. Only models
  // that were loaded with the small network's file have this decoder.
  kTiny,
};

inline constexpr std::array kDecoders = {Decoder::kFull, Decoder::kTiny};

// Returns "full" or "tiny".
constexpr std::string_view NameOf(Decoder decoder) {
  return decoder == Decoder::kFull ? "full" : "tiny";
}

// Returns the decoder with this name; nullopt for any other text.
constexpr std::optional<Decoder> ParseDecoder(std::string_view name) {
  for (const Decoder decoder : kDecoders) {
    if (NameOf(decoder) == name) return decoder;
  }
  return std::nullopt;
}

}  // namespace wan
