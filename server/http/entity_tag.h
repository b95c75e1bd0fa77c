// Evaluates the header field If-None-Match of a download.
#pragma once

#include <string_view>

namespace wan::server {

// Whether `field` is "*" or contains `tag` (an entity tag with its quotes), so that the caller
// already has the content. Compares weakly (RFC 9110). Join several fields with commas.
bool TagListed(std::string_view field, std::string_view tag);

}  // namespace wan::server
