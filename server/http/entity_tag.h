// Evaluates the header field If-None-Match of a request for a download.
#pragma once

#include <string_view>

namespace wan::server {

// Whether `field` is "*" or contains `tag` (an entity tag with its quotes); then the caller already
// has the content. Compares the tags weakly (RFC 9110). If a request has the field several times,
// join the values with commas.
bool TagListed(std::string_view field, std::string_view tag);

}  // namespace wan::server
