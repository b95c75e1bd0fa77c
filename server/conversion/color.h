// Colours as the contract writes them: "#rrggbb", two hexadecimal digits for red, green and blue.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/api/input_image.h"

namespace wan::server {

// Takes capital and small digits. Nothing for any other text.
std::optional<Color> ParseColor(std::string_view text);

// Small digits: "#ffffff".
std::string ColorText(const Color& color);

}  // namespace wan::server
