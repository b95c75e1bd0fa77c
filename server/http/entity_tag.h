// Evaluates the header field If-None-Match of a request for a download.
#pragma once

#include <string_view>
#include <vector>

namespace wan::server {

// Whether a value of the field is "*" or contains `tag` (an entity tag with its quotes), so that
// the caller already has the content. Compares weakly (RFC 9110).
bool TagListed(const std::vector<std::string_view>& values, std::string_view tag);

}  // namespace wan::server
