// Makes and reads the page tokens of list methods.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::server {

// Returns an opaque token that contains `place`, which says where a page has ended. `list`
// identifies the list: the method, filter and order of the request.
std::string MakePageToken(std::string_view place, std::string_view list);

// Returns the place that a token contains. Fails with INVALID_ARGUMENT and a violation of
// `page_token` if MakePageToken has not made the token, or has made it for another list.
absl::StatusOr<std::string> ParsePageToken(const std::string& token, std::string_view list);

}  // namespace wan::server
