// The header field If-None-Match of a download.
#pragma once

#include <string_view>

namespace wan::server {

// Whether `field` names `tag`, an entity tag in its quotes, or is "*": the caller has the content
// already. Tags are compared weakly, as RFC 9110 says. Several fields count as one with commas.
bool TagListed(std::string_view field, std::string_view tag);

}  // namespace wan::server
