// Parses and writes colours in the contract's form "#rrggbb", in hexadecimal digits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/api/input_image.h"

namespace wan::server {

// Accepts capital and small letters as digits. Returns nothing for other texts.
std::optional<Color> ParseColor(std::string_view text);

// Returns the text with small letters: "#ffffff".
std::string ColorText(const Color& color);

}  // namespace wan::server
