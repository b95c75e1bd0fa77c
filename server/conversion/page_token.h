// Makes and reads the page tokens of list methods.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::server {

// Returns an opaque token that contains `place`, the end of a page. `list` identifies the list,
// that is method, filter and order.
std::string MakePageToken(std::string_view place, std::string_view list);

// Returns the place in a token. INVALID_ARGUMENT with a violation of `page_token` if MakePageToken
// did not make it, or made it for another list.
absl::StatusOr<std::string> ParsePageToken(const std::string& token, std::string_view list);

}  // namespace wan::server
