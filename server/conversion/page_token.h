// What a list gives its caller to come back with.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::server {

// Opaque text that holds where the page ended. `list` is everything else that the list was asked
// for with: its method, filter and order. Equal lists have equal texts.
std::string MakePageToken(std::string_view place, std::string_view list);

// The place. INVALID_ARGUMENT, a violation of `page_token`, for what MakePageToken did not make, or
// made for another list.
absl::StatusOr<std::string> ParsePageToken(const std::string& token, std::string_view list);

}  // namespace wan::server
