// Converts colours from and to the contract's form "#rrggbb", in hexadecimal digits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/api/input_image.h"

namespace wan::server {

// Accepts capital and small digits. Returns nothing for other texts.
std::optional<Color> ParseColor(std::string_view text);

// Returns the text in small digits: "#ffffff".
std::string ColorText(const Color& color);

}  // namespace wan::server
